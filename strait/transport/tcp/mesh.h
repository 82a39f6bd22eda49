#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "strait/transport/tcp/bundle.h"
#include "strait/transport/tcp/dial.h"
#include "strait/transport/tcp/hello.h"
#include "strait/transport/tcp/listener.h"
#include "strait/transport/tcp/mailroom.h"
#include "strait/transport/tcp/meeting.h"
#include "strait/transport/tcp/relay.h"
#include "strait/transport/tcp/session.h"

namespace strait::tcp {

/// A rank's sessions with all others, and the thread that serves them. Rank 0 has one with everybody; others
/// have one when they need it, for which the higher rank connects to the lower. Where it cannot, rank 0 calls
/// the lower rank, which connects to the higher one, or else both connect to rank 0's relay.
class Mesh {
 public:
  /// Listens, and begins to look for rank 0. `attempt`: what tells apart the starts that could meet at one
  /// place. Throws Error when it cannot listen, PlaceTaken when another process has this rank.
  Mesh(Meeting meeting, int rank, int ranks, std::string attempt, std::chrono::milliseconds timeout);

  /// Takes leave of all, once they have had what was sent; of one whose link is down for two thirds of the
  /// timeout it does so without.
  ~Mesh();
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  // For any thread. For `where` and `named` see Mailroom, whose errors these throw.

  int rank() const { return mailroom_.rank(); }
  int ranks() const { return mailroom_.ranks(); }
  Mailroom& mailroom() { return mailroom_; }

  /// Sends; waits while the receiver has no room. Throws WireError for a message that is longer than the
  /// receiver takes.
  void send(int to, const Channel& channel, Buffer message, const std::string& where, int named);

  /// Sees to it that there is a session with the peer soon.
  void want(int peer);

  /// Says that a message will be received, so that it takes no room.
  void expect(int from, const Channel& channel);

  Buffer receive(int from, const Channel& channel, const std::string& where, int named);

  /// Waits until the peer has had all that was sent.
  void drain(int to, const std::string& where) { mailroom_.wait_until_confirmed(to, where, to); }

  /// Tells the others why this rank ends, and ends all waits.
  void fail(const Failure& failure);

  /// The ways to those whom this rank has spoken with.
  std::vector<LinkStatus> links();

  // Joining.

  /// What is known while the ranks come.
  struct Attendance {
    std::vector<int> missing;                   ///< as far as this rank knows
    std::string refusal;                        ///< why this rank is not let in; empty: it is not refused
    Obstacle obstacle = Obstacle::unreachable;  ///< the worst on the way to rank 0 since its host was known
    std::string last_refused;                   ///< on rank 0: see Listener
  };
  Attendance attendance();

  /// Whether attendance() has something new since it was last called, or a rank has failed. It is for
  /// Mailroom::wait().
  bool has_news() const { return news_; }

  /// At which it listens; 0: at a socket of the file system.
  uint16_t port() const;

  /// Where this rank can be reached and what it is known by, for the others; once it has met rank 0.
  std::string card() const;

  /// Takes in what the others said by card(), in the order of ranks. From now on sessions with all can be had.
  /// Throws WireError for what is not a card.
  void take_cards(const std::vector<std::string>& cards);

 private:
  struct Peer;
  using Time = std::chrono::steady_clock::time_point;
  Peer& at(int peer) { return *peers_[static_cast<size_t>(peer)]; }
  void on_loop(const EventLoop::Work& work);
  void flush(int peer);
  void send_urgent(int to, Kind kind, Buffer message);
  Mailroom::Farewell last_word_from(Time begin) const;
  bool has_failed_or_left(int peer) const;
  void tick();
  void look_after(int peer, Time now);
  void dial(int peer);
  void dial(int peer, const Endpoint& endpoint, const std::string& hello);
  std::shared_ptr<Dial> new_dial(int peer, const Endpoint& endpoint, const std::string& hello);
  void called(int peer);
  void brought_together(int peer, const std::shared_ptr<Connection>& connection);
  void relay(std::shared_ptr<Introduction> who, int from, int to);
  void answered(int peer, const std::shared_ptr<Connection>& connection, const std::string& reply);
  bool go_on(int peer, const std::shared_ptr<Connection>& connection, const std::string& reply);
  std::shared_ptr<Line> line_over(int peer, const std::shared_ptr<Connection>& connection, int connections,
                                  uint64_t id);
  void widen(int peer, Time now);
  void widened(int peer, const std::shared_ptr<Connection>& connection, const std::string& reply);
  void refused(int peer, const std::string& why);
  void not_reached(int peer, Obstacle obstacle);
  void greeted(const std::shared_ptr<Introduction>& who, const std::string& text);
  void let_in(const std::shared_ptr<Introduction>& who, const Hello& hello);
  void hear(int peer, Kind kind, const Buffer& message);
  void note_missing();
  void tell_news();
  void set_broken(int peer, const std::string& reason);
  void set_gone(int peer, const std::string& reason = kGoneReason);
  void spread(const Failure& failure, int except);
  Hello hello_to(int peer);

  Mailroom mailroom_;
  Meeting meeting_;
  const std::string attempt_;
  const std::string token_;  ///< tells this process from another that comes as the same rank
  Endpoint own_;             ///< where this rank listens
  std::unique_ptr<RankPlace> place_;
  mutable std::mutex mutex_;
  Attendance attendance_;
  std::atomic<bool> news_ = false;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::unique_ptr<Listener> listener_;
  Relay relay_;
  bool leaves_ = false;              ///< of the loop's thread: nobody is let in any more
  bool closed_ = false;              ///< likewise: nothing is begun any more
  std::unique_ptr<EventLoop> loop_;  // last: its thread uses the others
};

}  // namespace strait::tcp
