#include "strait/transport/gloo/rendezvous.h"

#include <c10/util/Logging.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <thread>

#include "strait/base/clock.h"
#include "strait/base/text.h"
#include "strait/transport/c10d/store_call.h"
#include "strait/transport/c10d/torchruns_store.h"
#include "strait/transport/failure.h"
#include "strait/transport/gloo/rank_store.h"

namespace strait {
namespace {

using std::chrono::milliseconds;
using store::bytes_of;
using store::text_of;

constexpr int kOnlyFatal = 3;  // of LibTorch's log: what goes wrong is said once, in the error
constexpr milliseconds kPoll(20);
constexpr milliseconds kLingerLimit(5000);  // how long the store outlives a failure for the others to read it

std::string handshake_key(int rank) { return fmt::format("hello/{}", rank); }

/// Who has not come, for two threads.
class Missing {
 public:
  explicit Missing(int size) : ranks_(static_cast<size_t>(size)) { std::iota(ranks_.begin(), ranks_.end(), 0); }
  std::vector<int> ranks() const {
    const std::scoped_lock lock(mutex_);
    return ranks_;
  }
  void set(std::vector<int> ranks) {
    const std::scoped_lock lock(mutex_);
    ranks_ = std::move(ranks);
  }

 private:
  mutable std::mutex mutex_;
  std::vector<int> ranks_;
};

/// Waits for all ranks, until the patience of one of them is at its end: then it is for all. Gives what they
/// said, or nothing.
std::vector<std::string> attendance(const FailureBoard& board, int size, milliseconds patience,
                                    Missing& missing) {
  c10d::Store& store = *board.store();
  const Stopwatch watch;
  while (true) {
    auto ranks = missing.ranks();
    std::erase_if(ranks, [&](int rank) { return store.check({handshake_key(rank)}); });
    missing.set(ranks);
    if (ranks.empty()) break;
    const bool over = watch.seconds() * 1e3 >= static_cast<double>(patience.count());
    if (over || board.has_word()) return {};
    std::this_thread::sleep_for(kPoll);
  }
  std::vector<std::string> handshakes;
  handshakes.reserve(static_cast<size_t>(size));
  for (int rank = 0; rank < size; ++rank) handshakes.push_back(text_of(store.get(handshake_key(rank))));
  return handshakes;
}

}  // namespace

Rendezvous::Rendezvous(Membership membership, milliseconds timeout, const WaitingFor& waiting)
    : membership_(std::move(membership)), timeout_(timeout) {
  static std::once_flag quiet;  // the ranks of a process may be threads
  std::call_once(quiet, [] {
    FLAGS_caffe2_log_level = kOnlyFatal;
    c10::UpdateLoggingLevelsFromFlags();
  });
  auto store = membership_.store_host == StoreHost::torchrun ? open_torchruns_store(membership_, timeout_)
                                                             : open_store(waiting);
  board_ = std::make_shared<FailureBoard>(std::move(store), membership_.rank, membership_.size, timeout_);
}

c10::intrusive_ptr<c10d::Store> Rendezvous::open_store(const WaitingFor& waiting) {
  if (membership_.serves_store()) {
    try {
      server_ = std::make_unique<StoreServer>(membership_.master_address, membership_.master_port,
                                              membership_.size, membership_.attempt);
    } catch (const Error& error) {
      throw Error("rank 0 cannot listen at {}: {}", membership_.rendezvous_endpoint(), error.what());
    }
  }
  return c10::make_intrusive<RankStore>(membership_, timeout_, [&] { waiting({0}); });
}

std::vector<std::string> Rendezvous::exchange(const std::string& handshake, const WaitingFor& waiting) {
  const milliseconds patience = timeout_ - limited(kReserve, timeout_);
  const auto missing = std::make_shared<Missing>(membership_.size);
  const auto handshakes = within<std::vector<std::string>>(
      timeout_,
      [=, board = board_, rank = membership_.rank, size = membership_.size] {
        board->store()->set(handshake_key(rank), bytes_of(handshake));
        return attendance(*board, size, patience, *missing);
      },
      [&] {
        const auto ranks = missing->ranks();
        if (!ranks.empty()) waiting(ranks);
      });
  if (!handshakes) {
    throw Error("rank {}: rank 0 at {} no longer answers", membership_.rank, membership_.rendezvous_endpoint());
  }
  if (!handshakes->empty()) return *handshakes;
  const std::string reason = why_not_all(missing->ranks());
  board_->leave({.rank = membership_.rank, .diverged = false, .reason = reason});
  linger();
  throw Error("rank {}: {}", membership_.rank, reason);
}

std::string Rendezvous::why_not_all(const std::vector<int>& missing) {
  const auto failure = board_->read();
  if (failure && failure->reason == kGoneReason)
    return fmt::format("rank {} came, but {}", failure->rank, kGoneReason);
  std::vector<std::string> names;
  names.reserve(missing.size());
  for (const int rank : missing) names.push_back(std::to_string(rank));
  return fmt::format("of {} ranks these did not come within {} s: {}", membership_.size,
                     timeout_.count() / 1000, list_of(names));
}

void Rendezvous::linger() {
  if (server_) server_->wait_until_left(limited(kLingerLimit, timeout_));
}

}  // namespace strait
