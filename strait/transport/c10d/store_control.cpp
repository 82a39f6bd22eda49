#include "strait/transport/c10d/store_control.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>

#include "strait/base/error.h"
#include "strait/transport/c10d/store_call.h"
#include "strait/transport/store_protocol.h"

namespace strait {
namespace {

using std::chrono::milliseconds;
using store::bytes_of;
using store::text_of;

constexpr milliseconds kWhileIdle(50);        // between two looks, while nobody waits for an answer
constexpr milliseconds kWhileWaiting(2);      // the same, while somebody does
constexpr milliseconds kPatienceAtEnd(1000);  // with a store that does not answer

}  // namespace

/// The messages to and from this rank. Those to rank R lie under `to/R/0`, `to/R/1` and so on, as
/// `TOKEN RANK KIND NUMBER` of their sender; R leaves its token under `heard/R/0` and so on. The tokens are
/// those that Rendezvous::trust() tells of: torchrun's store takes what anybody writes.
class StoreControl::Mailbox {
 public:
  Mailbox(const Connections& connections, int number, ControlHandler handle)
      : store_(connections.board().store()),
        tokens_(connections.board().tokens()),
        rank_(connections.rank()),
        prefix_(fmt::format("control/{}/", number)),
        handle_(std::move(handle)) {}

  /// The thread's work, until close().
  void run() {
    std::unique_lock lock(mutex_);
    while (!closed_ && failure_.empty()) {
      lock.unlock();
      const std::string failure = look();
      lock.lock();
      failure_ = failure;
      changed_.notify_all();
      changed_.wait_for(lock, unheard_.empty() ? kWhileIdle : kWhileWaiting,
                        [&] { return closed_ || !outbox_.empty(); });
    }
    ended_ = true;
    changed_.notify_all();
  }

  void put(const std::vector<int>& peers, const ControlMessage& message, bool confirmed) {
    const std::scoped_lock lock(mutex_);
    for (const int peer : peers) outbox_.push_back({peer, message, confirmed});
    if (confirmed) unheard_.insert(unheard_.end(), peers.begin(), peers.end());
    changed_.notify_all();
  }

  /// Waits until everything that was put to be confirmed is. Gives those that have not confirmed it, and why it
  /// could not be waited for (empty: they took too long).
  std::pair<std::vector<int>, std::string> wait(milliseconds limit) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, limit, [&] { return unheard_.empty() || !failure_.empty(); });
    return {std::exchange(unheard_, {}), failure_};
  }

  /// No handler is called from now on. Gives whether the thread is at its end within the limit.
  bool close(milliseconds limit) {
    std::unique_lock lock(mutex_);
    closed_ = true;
    changed_.notify_all();
    return changed_.wait_for(lock, limit, [&] { return ended_; });
  }

 private:
  struct Letter {
    int to;
    ControlMessage message;
    bool confirmed;
  };

  std::string key(const char* kind, int rank, int64_t index) const {
    return fmt::format("{}{}/{}/{}", prefix_, kind, rank, index);
  }
  const std::string& token_of(int rank) const { return tokens_[static_cast<size_t>(rank)]; }

  /// Sends, takes in and confirms what there is. Gives why no more is to be expected; empty: nothing is wrong.
  std::string look() {
    try {
      send();
      receive();
      return take_in_confirmations();
    } catch (const std::exception& error) {
      return error.what();
    }
  }

  void send() {
    std::deque<Letter> letters;
    {
      const std::scoped_lock lock(mutex_);
      letters.swap(outbox_);
    }
    for (const auto& [to, message, confirmed] : letters) {
      const int64_t index = store_->add(fmt::format("{}count/{}", prefix_, to), 1) - 1;
      store_->set(key("to", to, index),
                  bytes_of(fmt::format("{} {} {} {}", token_of(rank_), rank_,
                                       static_cast<uint32_t>(message.kind), message.number)));
      if (confirmed) unconfirmed_.emplace(to, index);
    }
  }

  void receive() {
    for (; store_->check({key("to", rank_, next_)}); ++next_) {
      const auto message = message_in(text_of(store_->get(key("to", rank_, next_))));
      {
        const std::scoped_lock lock(mutex_);
        if (closed_) return;
        if (message) handle_(*message);
      }
      store_->set(key("heard", rank_, next_), bytes_of(token_of(rank_)));
    }
  }

  std::string take_in_confirmations() {
    for (auto one = unconfirmed_.begin(); one != unconfirmed_.end();) {
      const auto& [rank, index] = *one;
      const std::string heard = key("heard", rank, index);
      if (!store_->check({heard}) || text_of(store_->get(heard)) != token_of(rank)) {
        ++one;
        continue;
      }
      const std::scoped_lock lock(mutex_);
      std::erase(unheard_, rank);
      one = unconfirmed_.erase(one);
    }
    if (unconfirmed_.empty()) return "";
    return store_->check({store::kFailureKey}) || store_->check({store::kGoneKey}) ? "a rank has failed" : "";
  }

  std::optional<ControlMessage> message_in(const std::string& text) const {
    std::istringstream in(text);
    std::string token;
    size_t from = 0;
    uint32_t kind = 0;
    uint64_t number = 0;
    if (!(in >> token >> from >> kind >> number) || from >= tokens_.size() || token != tokens_[from]) {
      return std::nullopt;
    }
    return ControlMessage{static_cast<ControlKind>(kind), number};
  }

  const c10::intrusive_ptr<c10d::Store> store_;
  const std::vector<std::string> tokens_;
  const int rank_;
  const std::string prefix_;
  const ControlHandler handle_;

  int64_t next_ = 0;                    ///< of the messages to this rank; of the thread, as is the next
  std::map<int, int64_t> unconfirmed_;  ///< rank and index of what it was sent

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Letter> outbox_;
  std::vector<int> unheard_;  ///< ranks that have not confirmed yet
  std::string failure_;
  bool closed_ = false;
  bool ended_ = false;
};

StoreControl::StoreControl(std::shared_ptr<Connections> connections, int number, std::vector<int> peers,
                           const std::string& what, ControlHandler handle)
    : connections_(std::move(connections)),
      peers_(std::move(peers)),
      what_(what),
      mailbox_(std::make_shared<Mailbox>(*connections_, number, std::move(handle))),
      thread_([mailbox = mailbox_] { mailbox->run(); }) {}

StoreControl::~StoreControl() {
  if (mailbox_->close(kPatienceAtEnd)) {
    thread_.join();
  } else {
    thread_.detach();  // a store whose host has gone may never answer
  }
}

void StoreControl::post(const ControlMessage& message) { mailbox_->put(peers_, message, false); }

void StoreControl::deliver(const ControlMessage& message) {
  mailbox_->put(peers_, message, true);
  // The other ranks wait for data meanwhile, and are to hear from this one who did not answer.
  const milliseconds limit = connections_->patience() / 2;
  const auto [missing, reason] = mailbox_->wait(limit);
  if (missing.empty()) return;
  const std::string where = fmt::format("rank {}, {}", connections_->rank(), what_);
  if (reason.empty()) {
    const double seconds = std::chrono::duration<double>(limit).count();
    connections_->explain(where, missing.front(), fmt::format("no answer for {:.3g} s", seconds));
  }
  connections_->explain(where, missing.size() == 1 ? missing.front() : -1, reason);
}

}  // namespace strait
