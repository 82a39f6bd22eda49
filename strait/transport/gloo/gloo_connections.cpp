#include "strait/transport/gloo/gloo_connections.h"

#include <gloo/context.h>
#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>

#include "strait/base/error.h"
#include "strait/transport/socket.h"

namespace strait {
namespace {

/// The numeric address from which this machine reaches the host: what its peers can reach it at.
std::string own_address_towards(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    throw InputError("MASTER_ADDR: \"{}\" is no address that this machine knows", host);
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, freeaddrinfo);
  for (const addrinfo* to = addresses.get(); to != nullptr; to = to->ai_next) {
    const Socket way(socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!way) continue;
    sockaddr_storage own{};
    socklen_t size = sizeof(own);
    auto* const address = reinterpret_cast<sockaddr*>(&own);
    // Connecting a datagram socket sends nothing; it chooses the route.
    const bool routed = connect(way.descriptor(), to->ai_addr, to->ai_addrlen) == 0 &&
                        getsockname(way.descriptor(), address, &size) == 0;
    std::array<char, NI_MAXHOST> text{};
    if (routed && getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0) {
      return text.data();
    }
  }
  throw Error("MASTER_ADDR: there is no route to \"{}\"", host);
}

std::shared_ptr<gloo::transport::Device> make_device(const Membership& membership) {
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  if (interface != nullptr && *interface != '\0') {
    try {
      return c10d::ProcessGroupGloo::createDeviceForInterface(interface);
    } catch (const std::exception&) {
      throw InputError("GLOO_SOCKET_IFNAME: there is no usable network interface \"{}\"", interface);
    }
  }
  return c10d::ProcessGroupGloo::createDeviceForHostname(
      own_address_towards(membership.master_address, membership.master_port));
}

}  // namespace

/// Adds what LibTorch keeps to itself.
class GlooConnections::Gloo : public c10d::ProcessGroupGloo {
 public:
  using ProcessGroupGloo::ProcessGroupGloo;
  void close() {
    for (const auto& context : contexts_) context->closeConnections();
  }
};

GlooConnections::GlooConnections(c10::intrusive_ptr<Gloo> gloo, std::unique_ptr<Rendezvous> rendezvous)
    : Connections(gloo, rendezvous->board()), gloo_(std::move(gloo)), rendezvous_(std::move(rendezvous)) {}

GlooConnections::~GlooConnections() = default;

std::shared_ptr<GlooConnections> GlooConnections::open(const Membership& membership,
                                                       std::unique_ptr<Rendezvous> rendezvous) {
  // Gloo's own threads, which this one waits for at the end, are to give up when wait() does.
  const FailureBoard& board = *rendezvous->board();
  auto options = c10d::ProcessGroupGloo::Options::create(part_to_wait(board.timeout()));
  options->devices = {make_device(membership)};
  options->threads = 1;  // for collectives, of which there are none
  c10::intrusive_ptr<Gloo> gloo;
  try {
    gloo = c10::make_intrusive<Gloo>(board.store(), membership.rank, membership.size, options);
  } catch (const std::exception& error) {
    board.explain(fmt::format("rank {}", membership.rank), -1, error.what());
  }
  return std::shared_ptr<GlooConnections>(new GlooConnections(std::move(gloo), std::move(rendezvous)));
}

void GlooConnections::break_off(const Failure& /*failure*/) {
  gloo_->close();
  rendezvous_->linger();
}

}  // namespace strait
