#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "strait/transport/tcp/introduction.h"
#include "strait/transport/tcp/tls.h"

namespace strait::tcp {

/// Why a process was not reached.
enum class Obstacle {
  unreachable,  ///< nothing comes back
  unknown,      ///< the host's name has no address
  refused,      ///< nobody listens there
  stranger,     ///< what listens there does not speak as a rank does
  secret,       ///< what listens there does not know the secret
};

/// One attempt to connect to an endpoint: at its host's addresses one after another, with an introduction. All
/// members are for the loop's thread.
class Dial : public std::enable_shared_from_this<Dial> {
 public:
  struct Events {
    /// It answered. May end the dial.
    std::function<void(std::shared_ptr<Connection> connection, const std::string& reply)> answered;

    /// It did not. May end the dial.
    std::function<void(Obstacle obstacle)> failed;
  };

  /// `tls`: null for a socket of the file system. `hello`: what to say; empty: it is enough to be connected,
  /// and `answered` gets an empty reply.
  Dial(EventLoop& loop, const Tls* tls, Endpoint endpoint, std::string hello, Events events);

  /// Begins.
  void start();

  /// The same over a connection that there is already.
  void start_over(std::shared_ptr<Connection> connection);

  /// To be called a few times a second: gives up what takes too long.
  void tick(std::chrono::steady_clock::time_point now);

 private:
  void try_next();
  void connected();
  void next_or_fail(Obstacle obstacle);

  EventLoop& loop_;
  const Tls* tls_;
  Endpoint endpoint_;
  std::string hello_;
  Events events_;
  std::vector<SocketAddress> addresses_;  ///< that are left, the next one last
  Socket socket_;
  std::unique_ptr<EventLoop::Watch> watch_;
  std::unique_ptr<Introduction> introduction_;
  std::chrono::steady_clock::time_point give_up_ = std::chrono::steady_clock::time_point::max();
};

}  // namespace strait::tcp
