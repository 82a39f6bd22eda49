#include "strait/transport/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "strait/base/error.h"

namespace strait {
namespace {

using std::chrono::milliseconds;

constexpr int kType = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
constexpr milliseconds kAddressLimit(
    3000);  // for one of several addresses of a host, of which some may not answer

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

/// None when the host is not known.
Addresses addresses_of(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) found = nullptr;
  return {found, freeaddrinfo};
}

/// Whether the socket is ready by then.
bool wait_for(const Socket& socket, short event, Deadline deadline) {
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd wait{socket.descriptor(), event, 0};
    const int ready = poll(&wait, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

std::string listen_reason(int error) {
  if (error == EADDRINUSE) return "another program listens there";
  if (error == EADDRNOTAVAIL) return kNotOwnAddress;
  return std::strerror(error);
}

/// Whether a call moved bytes, or may be made again once the socket is ready.
bool may_go_on(ssize_t moved) {
  return moved > 0 || (moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

}  // namespace

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}

void switch_on(const Socket& socket, int level, int option) {
  const int on = 1;
  setsockopt(socket.descriptor(), level, option, &on, sizeof(on));
}

Socket listen_at(const std::string& host, uint16_t port) {
  const auto addresses = addresses_of(host, port);
  if (!addresses) throw Error("this machine does not know that name");
  int error = 0;
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
    Socket listener(socket(at->ai_family, kType, 0));
    if (!listener) {
      error = errno;
      continue;
    }
    switch_on(listener, SOL_SOCKET, SO_REUSEADDR);
    const int v6_only = 0;  // "::" is every address, of IPv4 too
    if (at->ai_family == AF_INET6) {
      setsockopt(listener.descriptor(), IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only));
    }
    if (bind(listener.descriptor(), at->ai_addr, at->ai_addrlen) == 0 &&
        listen(listener.descriptor(), SOMAXCONN) == 0) {
      return listener;
    }
    error = errno;
  }
  throw Error("{}", listen_reason(error));
}

Socket listen_at_any(uint16_t port) {
  try {
    return listen_at("::", port);
  } catch (const Error&) {  // this machine has no IPv6
    return listen_at("0.0.0.0", port);
  }
}

uint16_t port_of(const Socket& listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(listener.descriptor(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw Error("a socket has no port: {}", std::strerror(errno));
  }
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

std::optional<Socket> accept_from(const Socket& listener) {
  Socket socket(accept4(listener.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket) return std::nullopt;
  switch_on(socket, IPPROTO_TCP, TCP_NODELAY);
  return socket;
}

/// Of a port that the system gives to those who connect, which nobody listens at: TCP lets both ends be one.
bool is_connected_to_itself(const Socket& connection) {
  const auto address_by = [&](auto system_call) {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    const bool is_known =
        system_call(connection.descriptor(), reinterpret_cast<sockaddr*>(&address), &size) == 0;
    return std::string(reinterpret_cast<const char*>(&address), is_known ? size : 0);
  };
  const std::string own = address_by(&getsockname);
  return !own.empty() && own == address_by(&getpeername);
}

std::optional<Socket> connect_to(const std::string& host, uint16_t port, Deadline deadline) {
  const auto addresses = addresses_of(host, port);
  for (const addrinfo* to = addresses.get(); to != nullptr; to = to->ai_next) {
    Socket connection(socket(to->ai_family, kType, 0));
    if (!connection) continue;
    const auto limit = std::min(deadline, std::chrono::steady_clock::now() + kAddressLimit);
    if (connect(connection.descriptor(), to->ai_addr, to->ai_addrlen) != 0 &&
        (errno != EINPROGRESS || !wait_for(connection, POLLOUT, limit))) {
      continue;
    }
    int error = 0;
    socklen_t size = sizeof(error);
    if (getsockopt(connection.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) continue;
    if (is_connected_to_itself(connection)) continue;
    switch_on(connection, IPPROTO_TCP, TCP_NODELAY);
    return connection;
  }
  return std::nullopt;
}

bool send_all(const Socket& socket, std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (!may_go_on(sent)) return false;
    if (sent > 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (!wait_for(socket, POLLOUT, deadline)) {
      return false;
    }
  }
  return true;
}

bool receive_all(const Socket& socket, std::span<char> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t got = recv(socket.descriptor(), bytes.data(), bytes.size(), 0);
    if (!may_go_on(got)) return false;
    if (got > 0) {
      bytes = bytes.subspan(static_cast<size_t>(got));
    } else if (!wait_for(socket, POLLIN, deadline)) {
      return false;
    }
  }
  return true;
}

}  // namespace strait
