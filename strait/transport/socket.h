#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace strait {

/// A socket, or another descriptor, that is closed with its owner. Those that the functions here make are
/// non-blocking and closed on exec().
class Socket {
 public:
  Socket() = default;

  /// Takes over a descriptor.
  explicit Socket(int descriptor) : descriptor_(descriptor) {}

  /// Takes over the other's descriptor and leaves it none.
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

  /// Exchanges the descriptors.
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket();

  /// Whether there is a descriptor.
  explicit operator bool() const { return descriptor_ >= 0; }

  /// The descriptor, or -1.
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

/// When to give up.
using Deadline = std::chrono::steady_clock::time_point;

/// What listen_at() throws where the address is not this machine's.
inline constexpr const char* kNotOwnAddress = "this machine does not have that address";

/// Listens at that address of this machine and no other. `host` is a name or a number; port 0: any free one.
/// Throws Error with the reason alone, for the caller to say what it was for.
Socket listen_at(const std::string& host, uint16_t port);

/// Listens at every address of this machine, of IPv6 and of IPv4. Throws as listen_at() does.
Socket listen_at_any(uint16_t port);

/// The port at which a socket listens.
uint16_t port_of(const Socket& listener);

/// Somebody who has connected; none when nobody has. `errno` tells what else went wrong.
std::optional<Socket> accept_from(const Socket& listener);

/// Sets an option that is on or off.
void switch_on(const Socket& socket, int level, int option);

/// Tries every address of the host once; none when no connection comes about by the deadline.
std::optional<Socket> connect_to(const std::string& host, uint16_t port, Deadline deadline);

/// Sends all; false when the peer is gone or the deadline is over.
bool send_all(const Socket& socket, std::string_view bytes, Deadline deadline);

/// Fills `bytes`; false when the peer is gone or the deadline is over.
bool receive_all(const Socket& socket, std::span<char> bytes, Deadline deadline);

}  // namespace strait
