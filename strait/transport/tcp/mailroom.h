#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "strait/base/bytes.h"
#include "strait/transport/failure.h"
#include "strait/transport/tcp/message.h"

namespace strait::tcp {

/// Where threads wait for what the loop brings: messages, room at a receiver, confirmations, the end. Any
/// thread may call anything. `where` says in an error what is waited for, and `named` is the peer that it names
/// (-1: any). A wait ends with Error when a rank has failed or left, or when the peer has been silent for the
/// part of the timeout that is for waits. A peer that waits itself is not silent as long as it hears of whom it
/// waits for: it may be busy with what a third one sends over a slow link.
class Mailroom {
 public:
  /// Messages of one lane that may lie at a receiver who has not asked for them.
  static constexpr uint64_t kRoom = 16;

  Mailroom(int rank, int ranks, std::chrono::milliseconds timeout);

  int rank() const { return rank_; }
  int ranks() const { return static_cast<int>(peers_.size()); }
  std::chrono::milliseconds timeout() const { return timeout_; }

  // What has come. Those that give a bool: whether a message no longer takes room, for its sender to hear.

  bool put(int from, const Channel& channel, Buffer message);

  /// Says that a message will be asked for.
  bool expect(int from, const Channel& channel);
  struct Received {
    Buffer message;
    bool gives_room;
  };
  Received receive(int from, const Channel& channel, const std::string& where, int named);

  /// The same, but for `patience` behind `begin` and behind what was last heard of the rank: nothing when none
  /// has come. Errors name the peer.
  std::optional<Buffer> receive_for(std::chrono::milliseconds patience,
                                    std::chrono::steady_clock::time_point begin, int from,
                                    const Channel& channel, const std::string& where);

  /// The next message that any rank sent on the channel, and the rank; nothing once `stops` says so. wake() has
  /// it asked again.
  std::optional<std::pair<int, Buffer>> receive_any(const Channel& channel, const std::function<bool()>& stops);
  void wake();

  /// Drops what has come for a transport or control channel that is gone.
  void drop(Kind kind, uint16_t instance);

  /// A part of a message has come: the rank is not silent.
  void touch(int from);

  // Who is alive.

  using Time = std::chrono::steady_clock::time_point;

  /// When this rank last heard of those for whom it waits now, or began to wait, for `to` to hear. Nothing
  /// where it waits for nobody but `to`: two that wait for each other would keep each other waiting.
  std::optional<Time> alive_at(int to) const;

  /// The rank, which waits itself, has last heard of whom it waits for then.
  void note_alive(int from, Time then);

  // What goes.

  /// Waits until the receiver has room on the lane, and takes it.
  void wait_for_room(int to, const Channel& lane, const std::string& where, int named);
  void make_room(int to, const Channel& lane, uint64_t messages);

  /// Counts messages that were given to the session, and those that the peer has confirmed; none of these: a
  /// part of one.
  void note_sent(int to);
  void note_confirmed(int to, uint64_t messages);

  /// Waits until the peer has confirmed all.
  void wait_until_confirmed(int to, const std::string& where, int named);

  /// How long a rank that leaves waits for what it has sent.
  struct Farewell {
    std::chrono::steady_clock::time_point begin;  ///< of the wait
    std::chrono::milliseconds patience;           ///< behind it, and behind the last part that the peer took in
    std::chrono::milliseconds most;               ///< behind it, whatever the peer takes in
  };

  /// The same without an error: ends too when the peer has closed the session, and when the first failure of a
  /// rank comes meanwhile.
  void wait_until_confirmed(int to, const Farewell& farewell);

  // The end.

  /// A rank has failed; the first failure counts. False: it is not the first.
  bool set_failure(const Failure& failure);
  std::optional<Failure> failure() const;

  /// The rank has left in order: nothing will come from it any more.
  void set_left(int peer);
  bool has_left(int peer) const;

  /// The rank has left and closed the session.
  void set_closed(int peer);

  /// Ends every wait, those to come too.
  void end(const std::string& reason);

  /// Throws what a wait would that ended now, if it would.
  void check(const std::string& where, int peer, int named) const;

  /// Waits for `ready`, at most so long; gives what it said last. It is asked again after each change.
  bool wait(std::chrono::steady_clock::time_point until, const std::function<bool()>& ready);

 private:
  struct Box {
    std::deque<Buffer> messages;
    uint64_t expected = 0;  ///< receives that were announced and have not got theirs
  };
  struct Peer {
    Time heard = {};
    std::map<Channel, uint64_t> on_lane;  ///< messages that take room there
    uint64_t sent = 0;
    uint64_t confirmed = 0;
    Time confirmed_at = {};  ///< when the last message, or part of one, was
    bool left = false;
    bool closed = false;
  };
  struct Wait {
    int peer;
    Time begin;
  };
  using Lock = std::unique_lock<std::mutex>;
  void wait(Lock& lock, int peer, const std::string& where, int named, const std::function<bool()>& ready);

  /// False where nothing was heard of the peer for so long.
  bool wait(Lock& lock, int peer, std::chrono::milliseconds patience, Time begin, const std::string& where,
            int named, const std::function<bool()>& ready);
  void check_locked(const std::string& where, int peer, int named) const;
  Peer& at(int peer) { return peers_[static_cast<size_t>(peer)]; }
  const Peer& at(int peer) const { return peers_[static_cast<size_t>(peer)]; }
  Box& box(int from, const Channel& channel) { return boxes_[{channel, from}]; }

  int rank_;
  std::chrono::milliseconds timeout_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<Channel, int>, Box> boxes_;
  std::vector<Peer> peers_;
  std::list<Wait> waits_;  ///< of all threads
  std::optional<Failure> failure_;
  std::optional<std::string> ended_;
};

}  // namespace strait::tcp
