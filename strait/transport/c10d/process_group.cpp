#include "strait/transport/process_group.h"

#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "strait/base/error.h"
#include "strait/transport/c10d/c10d_group.h"
#include "strait/transport/c10d/lookout.h"
#include "strait/transport/c10d/store_call.h"
#include "strait/transport/handshake.h"

namespace strait {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kBetweenLooksForFailure(100);
constexpr milliseconds kBeforeSecondTry(1000);  // with a store that is gone
constexpr milliseconds kUntilHeard(1000);       // how long a rank waits for the others to hear of a failure
constexpr milliseconds kBetweenCounts(10);
constexpr const char* kHeardKey = "heard";  // counts the ranks that know of the first word

/// Waits a moment until all other ranks have counted themselves among those that know of the first word, as
/// this one does unless that word is its own.
void await_hearing(c10d::Store& store, int others, bool is_first, milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  int64_t heard = store.add(kHeardKey, is_first ? 0 : 1);
  while (heard < others && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kBetweenCounts);
    heard = store.add(kHeardKey, 0);
  }
}

/// Connections that stay when a rank fails: it leaves word, which the others look for while they wait.
class SharedConnections : public Connections {
 public:
  using Connections::Connections;

  /// Begins to look, when the board knows the tokens.
  void watch() {
    lookout_.emplace([board = shared_board(), waits = waits(), failures = 0]() mutable {
      return look(*board, *waits, failures);
    });
  }

 protected:
  /// Any rank may be the one that serves the store: all stay until the others have heard.
  void break_off(const Failure& failure) override {
    const auto first = board().read();
    const bool is_first = first && first->rank == failure.rank;
    const milliseconds limit = limited(kUntilHeard, board().timeout());
    within<bool>(limit, [=, store = board().store(), others = size() - 1] {
      await_hearing(*store, others, is_first, limit);
      return true;
    });
  }

 private:
  /// `failures`: looks in a row at which the store did not answer.
  static std::optional<milliseconds> look(const FailureBoard& board, Waits& waits, int& failures) {
    if (!waits.any()) return kBetweenLooksForFailure;
    try {
      if (!board.has_word() || !board.read()) {  // a word without its rank's token is none
        failures = 0;
        return kBetweenLooksForFailure;
      }
      waits.end(kGivenUp);
    } catch (const std::exception&) {
      // Where the store has gone with its process, what that sent before may still be on its way.
      failures += 1;
      if (failures == 1) return kBeforeSecondTry;
      waits.end("the store of the process group does not answer");
    }
    return std::nullopt;
  }

  std::optional<Lookout> lookout_;
};

/// Its Gloo.
c10::intrusive_ptr<C10dBackend> gloo_of(const c10::intrusive_ptr<c10d::ProcessGroup>& process_group) {
  constexpr const char* kExpected =
      "the process group: expected one with Gloo for tensors of the CPU, such as init_process_group(\"gloo\") "
      "makes";
  c10::intrusive_ptr<C10dBackend> backend;
  try {
    backend = cpu_backend_of(process_group);
  } catch (const std::exception&) {
    throw InputError("{}", kExpected);
  }
  const std::string name = backend->getBackendName();
  if (name != "gloo") throw InputError("{}, found {}", kExpected, name);
  return backend;
}

/// The store over a connection of its own, where LibTorch can make one: a call of another thread that waits for
/// a key holds up all others of its connection.
template <class Store>
c10::intrusive_ptr<c10d::Store> clone_of(c10::intrusive_ptr<Store> store) {
  if constexpr (requires { store->clone(); }) {
    return store->clone();
  } else {
    return store;
  }
}

}  // namespace

std::shared_ptr<Group> group_over(const c10::intrusive_ptr<c10d::ProcessGroup>& process_group,
                                  c10::intrusive_ptr<c10d::Store> store, const JoinOptions& options) {
  if (process_group->getSize() == 1) return std::make_shared<SingleProcessGroup>();
  const auto backend = gloo_of(process_group);
  const int rank = backend->getRank();
  std::shared_ptr<FailureBoard> board;
  try {
    const auto own = clone_of(std::move(store));
    const int64_t number = own->add(fmt::format("strait/groups/{}", rank), 1);
    board = std::make_shared<FailureBoard>(
        c10::make_intrusive<c10d::PrefixStore>(fmt::format("strait/{}", number), own), rank, backend->getSize(),
        options.timeout);
  } catch (const std::exception&) {
    throw Error("rank {}: the store of the process group does not answer", rank);
  }
  const auto connections = std::make_shared<SharedConnections>(backend, std::move(board));
  const auto group = std::make_shared<C10dGroup>(connections);
  const Handshake mine{.processes = group->size(), .flags = {}, .settings = options.settings};
  check_handshakes(rank, group->gather(mine.text()));
  group->exchange_tokens();
  connections->watch();
  return group;
}

}  // namespace strait
