#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <utility>

#include "strait/transport/tcp/out_queue.h"

namespace strait::tcp {

/// What a session sends. Urgent messages and room go before others that were not begun. Any thread may give
/// something; the rest is for the loop's thread.
class Outbound {
 public:
  // Any thread. They give whether the loop is to be told: it was not since it last looked.

  bool send(const Channel& channel, Buffer payload);
  bool give_room(const Channel& lane);
  bool leave();  ///< after all that was sent before

  // The loop's thread. `received`: bytes of the other direction.

  /// What is to be written next; see OutQueue.
  std::span<const std::byte> next(uint64_t received);
  void wrote(size_t bytes) { queue_.advance(bytes); }

  /// Adds a header that says what was received, unless something else is about to. `alive` is its size.
  void beat(uint64_t alive = 0) {
    beats_ = true;
    alive_ = alive;
  }

  /// The other side has had so many bytes: gives how many messages it has had besides. Throws WireError where
  /// there were never so many.
  uint64_t confirm(uint64_t bytes);

  /// Bytes that the other side has had of the first message that it has not had as a whole.
  uint64_t confirmed_part() const;

  /// Another connection is to carry on behind so many bytes. Throws WireError where they were freed already.
  void carry_on_from(uint64_t bytes);

  /// Whether the other side has confirmed more than so many bytes.
  bool is_past(uint64_t bytes) const { return bytes < queue_.confirmed(); }

 private:
  void fill(uint64_t received);

  std::mutex mutex_;
  std::deque<std::pair<Channel, Buffer>> urgent_;
  std::deque<std::pair<Channel, Buffer>> messages_;
  std::map<Channel, uint64_t> room_;  ///< messages, by lane
  bool leaves_ = false;
  bool told_ = false;  ///< the loop was, since it last looked

  OutQueue queue_;
  struct Sent {
    uint64_t begin;
    uint64_t end;
  };
  std::deque<Sent> sent_;  ///< messages that are not confirmed
  bool beats_ = false;
  uint64_t alive_ = 0;  ///< what the next beat says of others
};

}  // namespace strait::tcp
