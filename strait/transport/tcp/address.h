#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "strait/transport/socket.h"

namespace strait::tcp {

/// Where a process listens: a port of a host, or a socket in the file system that its user alone can open.
struct Endpoint {
  std::string host = {};  ///< a name or a number
  uint16_t port = 0;      ///< of the host
  std::string path = {};  ///< of the socket; empty: a port

  /// Whether it is a socket of this machine's file system.
  bool is_local() const { return !path.empty(); }

  /// Whether it says where.
  bool is_known() const { return is_local() || !host.empty(); }

  /// `10.0.0.1:29500`, `[::1]:29500` or the path.
  std::string text() const;

  /// The other way round; throws WireError for what text() does not give.
  static Endpoint parse(const std::string& text);
};

/// An address as the operating system takes it.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  /// `10.0.0.1`, which it is over IPv6 too, `fe80::1`; of a socket in the file system, `this machine`.
  std::string host() const;
};

/// The address of a socket in the file system. Throws Error when the path is too long for one.
SocketAddress local_address(const std::string& path);

/// Begins to connect; the socket can be written to once it has, or has failed. None where it failed at once,
/// `errno` tells how.
Socket begin_connect(const SocketAddress& address);

/// What became of it: an errno, 0: it is connected.
int connect_result(const Socket& socket);

/// The socket's own address, and that of the other side.
SocketAddress own_address(const Socket& socket);
SocketAddress peer_address(const Socket& socket);

/// Listens at a path, at which only processes of the user can connect (see is_own_user()). A socket that
/// another process left there is replaced. Throws Error with the reason.
Socket listen_at_path(const std::string& path);

/// Listens at the endpoint; at its port of any address where its host is not known, or is not this machine's,
/// as that of a router in front of it. Throws Error with the reason.
Socket listen_at(const Endpoint& endpoint);

/// Whether the other side of a socket in the file system is a process of this process's user.
bool is_own_user(const Socket& socket);

}  // namespace strait::tcp
