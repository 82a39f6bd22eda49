#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "strait/transport/tcp/introduction.h"
#include "strait/transport/tcp/tls.h"

namespace strait::tcp {

/// Takes those who connect, and hears who they are. Who does not prove that it knows the secret, or says
/// nothing within a moment, is turned away. All members are for the loop's thread.
class Listener {
 public:
  /// Who has introduced itself, and how. It answers by say().
  using Greeted = std::function<void(std::shared_ptr<Introduction> who, const std::string& hello)>;

  /// `tls`: null for a socket of the file system.
  Listener(EventLoop& loop, Socket socket, const Tls* tls, Greeted greeted);

  /// Takes a connection that came another way, whose other side is to say who it is.
  void take(std::shared_ptr<Connection> connection, const std::string& host);

  /// To be called a few times a second: drops those who are late.
  void tick(std::chrono::steady_clock::time_point now);

  /// Where somebody came from who did not know the secret or speaks another language, and what happened; empty:
  /// nobody.
  const std::string& last_refused() const { return last_refused_; }

 private:
  struct Stranger {
    std::shared_ptr<Introduction> introduction;
    std::string host;
    std::chrono::steady_clock::time_point late;
  };
  void accept_all();
  void greet(Socket socket);
  void wait();

  EventLoop& loop_;
  Socket socket_;
  const Tls* tls_;
  Greeted greeted_;
  std::unique_ptr<EventLoop::Watch> watch_;
  std::list<Stranger> strangers_;  ///< in the order in which they came
  std::string last_refused_;
  bool is_full_ = false;  ///< the process has no descriptor for another connection
};

}  // namespace strait::tcp
