#include "strait/transport/port.h"

#include <fstream>
#include <random>

#include "strait/base/error.h"
#include "strait/transport/socket.h"

namespace strait {
namespace {

constexpr int kFirstPort = 16384;  // below are the ports of well-known services
constexpr int kPortsTried = 64;    // of ports chosen by chance

/// The first of the ports that the kernel gives to who names none; 0 where it is not known.
int first_ephemeral_port() {
  std::ifstream range("/proc/sys/net/ipv4/ip_local_port_range");
  int first = 0;
  range >> first;
  return first;
}

}  // namespace

uint16_t free_port() {
  const int end = first_ephemeral_port();
  std::random_device device;
  for (int i = 0; i < kPortsTried && end > kFirstPort; ++i) {
    const int port = std::uniform_int_distribution<int>(kFirstPort, end - 1)(device);
    try {
      return port_of(listen_at("127.0.0.1", static_cast<uint16_t>(port)));
    } catch (const Error&) {  // taken
    }
  }
  return port_of(listen_at("127.0.0.1", 0));
}

}  // namespace strait
