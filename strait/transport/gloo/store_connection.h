#pragma once

#include <optional>
#include <string>
#include <utility>

#include "strait/transport/socket.h"

namespace strait {

/// The store's side of a connection: reads messages and writes replies without waiting for the other side,
/// whose first message is a greeting and each later one a request (store_protocol.h).
class StoreConnection {
 public:
  /// Whoever is there has until then to say who it is.
  StoreConnection(Socket socket, Deadline greet_by) : socket_(std::move(socket)), greet_by_(greet_by) {}

  /// What poll() is to wait for. A connection with a reply that has not gone is not read.
  short events() const;

  /// What poll() waits at.
  int descriptor() const { return socket_.descriptor(); }

  /// Reads what has come. Gives a message once it is there as a whole. Closes the connection where the other
  /// side has gone or declares a message that is too long.
  std::optional<std::string> read();

  /// Sends a reply, or as much of it as goes now.
  void reply(const std::string& bytes);

  /// Sends more of what is left of it. Closes the connection where the other side has gone.
  void write();

  /// From now on its messages are requests.
  void let_in(int rank) { rank_ = rank; }

  /// The rank that it is; none while it is a stranger.
  std::optional<int> rank() const { return rank_; }

  /// When a stranger is to be turned away.
  Deadline greet_by() const { return greet_by_; }

  /// Whether it is to stay.
  bool is_open() const { return open_; }

  /// It is to go.
  void close() { open_ = false; }

  /// The same for a rank that goes in order: it is a stranger again, whose end nobody need hear of.
  void leave() {
    rank_.reset();
    close();
  }

 private:
  size_t wanted() const;

  Socket socket_;
  Deadline greet_by_;
  std::optional<int> rank_;
  bool open_ = true;
  std::string in_;   ///< the beginning of a message
  std::string out_;  ///< the rest of a reply
};

}  // namespace strait
