#include "strait/transport/port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "strait/base/error.h"

namespace strait {

uint16_t free_port() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const bool found = listener >= 0 && bind(listener, any, size) == 0 && getsockname(listener, any, &size) == 0;
  const int error = errno;
  if (listener >= 0) close(listener);
  if (!found) throw Error("there is no free port: {}", std::strerror(error));
  return ntohs(address.sin_port);
}

}  // namespace strait
