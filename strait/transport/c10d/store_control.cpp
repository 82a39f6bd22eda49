#include "strait/transport/c10d/store_control.h"

#include <map>
#include <mutex>

#include "strait/base/error.h"
#include "strait/transport/c10d/control_keys.h"
#include "strait/transport/c10d/control_outbox.h"

namespace strait {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kWhileIdle(50);    // between two looks, while nobody waits for an answer
constexpr milliseconds kWhileWaiting(2);  // the same, while somebody does

}  // namespace

/// What the thread of the channel does at each look.
class StoreControl::Mailbox {
 public:
  Mailbox(const Connections& connections, int number, ControlHandler handle)
      : board_(connections.shared_board()),
        keys_(*board_, connections.rank(), number),
        handle_(std::move(handle)) {}

  ControlOutbox& outbox() { return outbox_; }

  /// Sends, takes in and confirms what there is.
  std::optional<milliseconds> look() {
    try {
      send();
      receive();
      take_in_confirmations();
    } catch (const std::exception& error) {
      outbox_.fail(error.what());
      return std::nullopt;
    }
    return outbox_.is_awaited() ? kWhileWaiting : kWhileIdle;
  }

  /// No handler is called from now on.
  void close() {
    const std::scoped_lock lock(handling_);
    handle_ = nullptr;
  }

 private:
  void send() {
    for (const auto& [to, message, confirmed] : outbox_.take()) {
      const int64_t index = keys_.send(to, message);
      if (confirmed) unconfirmed_.emplace(to, index);
    }
  }

  void receive() {
    for (; keys_.has(next_); ++next_) {
      const auto message = keys_.message(next_);
      {
        const std::scoped_lock lock(handling_);
        if (!handle_) return;
        if (message) handle_(*message);
      }
      keys_.confirm(next_);
    }
  }

  void take_in_confirmations() {
    std::erase_if(unconfirmed_, [&](const auto& sent) {
      const auto& [rank, index] = sent;
      const bool confirmed = keys_.is_confirmed(rank, index);
      if (confirmed) outbox_.confirm(rank);
      return confirmed;
    });
    if (!unconfirmed_.empty() && board_->has_word()) throw Error("a rank has failed");
  }

  const std::shared_ptr<FailureBoard> board_;
  const ControlKeys keys_;
  ControlOutbox outbox_;
  int64_t next_ = 0;                    ///< of the messages to this rank
  std::map<int, int64_t> unconfirmed_;  ///< rank and index of what it was sent
  std::mutex handling_;
  ControlHandler handle_;  ///< null once the channel has gone
};

StoreControl::StoreControl(std::shared_ptr<Connections> connections, int number, std::vector<int> peers,
                           const std::string& what, ControlHandler handle)
    : connections_(std::move(connections)),
      peers_(std::move(peers)),
      what_(what),
      mailbox_(std::make_shared<Mailbox>(*connections_, number, std::move(handle))),
      lookout_([mailbox = mailbox_] { return mailbox->look(); }) {}

StoreControl::~StoreControl() { mailbox_->close(); }

void StoreControl::post(const ControlMessage& message) {
  mailbox_->outbox().put(peers_, message, false);
  lookout_.wake();
}

void StoreControl::deliver(const ControlMessage& message) {
  mailbox_->outbox().put(peers_, message, true);
  lookout_.wake();
  // The other ranks wait for data meanwhile, and are to hear from this one who did not answer.
  const milliseconds limit = connections_->patience() / 2;
  const auto [missing, reason] = mailbox_->outbox().wait(limit);
  if (missing.empty()) return;
  const std::string where = fmt::format("rank {}, {}", connections_->rank(), what_);
  if (reason.empty()) {
    const double seconds = std::chrono::duration<double>(limit).count();
    connections_->explain(where, missing.front(), fmt::format("no answer for {:.3g} s", seconds));
  }
  connections_->explain(where, missing.size() == 1 ? missing.front() : -1, reason);
}

}  // namespace strait
