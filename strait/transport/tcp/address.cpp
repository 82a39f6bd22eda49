#include "strait/transport/tcp/address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "strait/base/error.h"

namespace strait::tcp {
namespace {

constexpr int kType = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

const sockaddr* general(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr*>(&address.storage);
}

}  // namespace

std::string Endpoint::text() const {
  if (is_local()) return path;
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

Endpoint Endpoint::parse(const std::string& text) {
  if (text.starts_with('/')) return {.path = text};
  const size_t colon = text.rfind(':');
  Endpoint endpoint;
  if (colon != std::string::npos) {
    endpoint.host = text.substr(0, colon);
    for (size_t i = colon + 1; i < text.size() && i <= colon + 5; ++i) {
      if (text[i] < '0' || text[i] > '9') break;
      endpoint.port = static_cast<uint16_t>(endpoint.port * 10 + (text[i] - '0'));
    }
  }
  if (endpoint.host.starts_with('[') && endpoint.host.ends_with(']')) {
    endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
  }
  if (endpoint.host.empty() || endpoint.text() != text) {
    throw WireError("\"{}\" is not an address, expected HOST:PORT", text);
  }
  return endpoint;
}

std::string SocketAddress::host() const {
  std::array<char, NI_MAXHOST> name{};
  if (storage.ss_family == AF_UNIX ||
      getnameinfo(general(*this), size, name.data(), name.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return "this machine";
  }
  const std::string_view mapped = "::ffff:";  // where a socket for both takes a connection over IPv4
  std::string host = name.data();
  if (host.starts_with(mapped) && host.find('.') != std::string::npos) host.erase(0, mapped.size());
  return host;
}

SocketAddress local_address(const std::string& path) {
  SocketAddress address;
  auto& local = reinterpret_cast<sockaddr_un&>(address.storage);
  if (path.size() >= sizeof(local.sun_path)) {
    throw Error("{}: too long for a socket, expected fewer than {} characters", path, sizeof(local.sun_path));
  }
  local.sun_family = AF_UNIX;
  std::memcpy(local.sun_path, path.c_str(), path.size() + 1);
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  return address;
}

Socket begin_connect(const SocketAddress& address) {
  Socket connection(socket(address.storage.ss_family, kType, 0));
  if (!connection) return {};
  if (address.storage.ss_family != AF_UNIX) switch_on(connection, IPPROTO_TCP, TCP_NODELAY);
  if (connect(connection.descriptor(), general(address), address.size) != 0 && errno != EINPROGRESS) return {};
  return connection;
}

int connect_result(const Socket& socket) {
  int error = 0;
  socklen_t size = sizeof(error);
  return getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

SocketAddress own_address(const Socket& socket) {
  SocketAddress address{.size = sizeof(sockaddr_storage)};
  getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&address.storage), &address.size);
  return address;
}

SocketAddress peer_address(const Socket& socket) {
  SocketAddress address{.size = sizeof(sockaddr_storage)};
  getpeername(socket.descriptor(), reinterpret_cast<sockaddr*>(&address.storage), &address.size);
  return address;
}

Socket listen_at_path(const std::string& path) {
  const SocketAddress address = local_address(path);
  unlink(path.c_str());
  Socket listener(socket(AF_UNIX, kType, 0));
  if (!listener || bind(listener.descriptor(), general(address), address.size) != 0 ||
      chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0 || listen(listener.descriptor(), SOMAXCONN) != 0) {
    throw Error("{}", std::strerror(errno));
  }
  return listener;
}

Socket listen_at(const Endpoint& endpoint) {
  if (endpoint.is_local()) return listen_at_path(endpoint.path);
  if (!endpoint.is_known()) return listen_at_any(endpoint.port);
  try {
    return strait::listen_at(endpoint.host, endpoint.port);
  } catch (const Error& error) {
    if (std::string_view(error.what()) != kNotOwnAddress) throw;
    return listen_at_any(endpoint.port);
  }
}

bool is_own_user(const Socket& socket) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  return getsockopt(socket.descriptor(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0 &&
         credentials.uid == geteuid();
}

}  // namespace strait::tcp
