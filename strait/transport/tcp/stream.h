#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "strait/transport/socket.h"

namespace strait::tcp {

/// Why a stream is closed whose other side broke off.
inline constexpr const char* kConnectionClosed = "connection closed";

/// What a try to read or write came to.
struct Progress {
  enum class State { moved, wants_read, wants_write, closed };
  State state = State::moved;  ///< wants_read, wants_write: nothing was moved, until the socket can do that
  size_t bytes = 0;            ///< moved
};

/// Bytes to and from the other side of a connected socket, without waiting.
class Stream {
 public:
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  const Socket& socket() const { return socket_; }

  /// Has both sides prove what they know. To be called until it gives moved, or closed.
  virtual Progress prove() { return {}; }

  virtual Progress read(std::span<std::byte> space) = 0;

  /// What did not move must be the beginning of the next call's bytes, however many follow it.
  virtual Progress write(std::span<const std::byte> bytes) = 0;

  /// Why it is closed.
  const std::string& reason() const { return reason_; }

 protected:
  explicit Stream(Socket socket) : socket_(std::move(socket)) {}
  Progress closed(std::string reason) {
    reason_ = std::move(reason);
    return {.state = Progress::State::closed};
  }

 private:
  Socket socket_;
  std::string reason_;
};

/// The bytes as they are: for a socket that only the user's own processes reach.
std::unique_ptr<Stream> make_plain_stream(Socket socket);

}  // namespace strait::tcp
