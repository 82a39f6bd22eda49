#include "strait/transport/gloo/connections.h"

#include <gloo/context.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "strait/base/error.h"
#include "strait/base/token.h"

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
    const int socket_number = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket_number < 0) continue;
    sockaddr_storage own{};
    socklen_t size = sizeof(own);
    auto* const address = reinterpret_cast<sockaddr*>(&own);
    // Connecting a datagram socket sends nothing; it chooses the route.
    const bool routed = connect(socket_number, to->ai_addr, to->ai_addrlen) == 0 &&
                        getsockname(socket_number, address, &size) == 0;
    close(socket_number);
    std::array<char, NI_MAXHOST> text{};
    if (routed && getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0) {
      return text.data();
    }
  }
  throw Error("MASTER_ADDR: there is no route to \"{}\"", host);
}

/// What Gloo says, without the place in its source.
std::string reason_in(const std::string& message) {
  for (const char* known : {"Connection closed by peer", "Connection reset by peer", "Broken pipe"}) {
    if (message.find(known) != std::string::npos) return "connection closed";
  }
  return message.substr(0, message.find('\n'));
}

/// What comes after a wait, up to the process's end, is to be within the timeout too.
std::chrono::milliseconds part_to_wait(std::chrono::milliseconds timeout) { return timeout * 2 / 3; }

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
class Connections::Gloo : public c10d::ProcessGroupGloo {
 public:
  using ProcessGroupGloo::ProcessGroupGloo;
  void close() {
    for (const auto& context : contexts_) context->closeConnections();
  }
};

Connections::Connections(const Membership& membership, std::chrono::milliseconds timeout,
                         std::unique_ptr<Rendezvous> rendezvous)
    : rank_(membership.rank), token_(random_token()), timeout_(timeout), rendezvous_(std::move(rendezvous)) {
  // Its own threads, which this one waits for at the end, are to give up when wait() does.
  auto options = c10d::ProcessGroupGloo::Options::create(part_to_wait(timeout));
  options->devices = {make_device(membership)};
  options->threads = 1;  // for collectives, which come one at a time
  try {
    gloo_ = c10::make_intrusive<Gloo>(rendezvous_->store(), membership.rank, membership.size, options);
  } catch (const std::exception& error) {
    explain(fmt::format("rank {}", rank_), -1, error.what());
  }
}

Connections::~Connections() = default;

c10d::ProcessGroupGloo& Connections::gloo() const { return *gloo_; }

std::chrono::milliseconds Connections::patience() const { return part_to_wait(timeout_); }

void Connections::begin(const std::string& where, int peer, const std::function<void()>& operation) const {
  try {
    operation();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    explain(where, peer, error.what());
  }
}

void Connections::wait(const std::string& where, int peer, c10d::Work& work) const {
  begin(where, peer, [&] {
    if (!work.wait(patience())) throw Error("{}: given up", where);
  });
}

void Connections::explain(const std::string& where, int peer, const std::string& message) const {
  const std::string who = peer < 0 ? "another rank" : fmt::format("rank {}", peer);
  const auto failure = rendezvous_->word();
  if (failure && failure->rank != rank_) {
    if (failure->diverged) throw NumericError("rank {}: {}", failure->rank, failure->reason);
    if (failure->rank == peer && failure->reason == kGoneReason)
      throw Error("{}: {} is gone: {}", where, who, kGoneReason);
    const std::string first = fmt::format("rank {}", failure->rank);
    throw Error("{}: {} is gone; the first to fail was {}", where, who,
                failure->reason.starts_with(first) ? failure->reason : first + ": " + failure->reason);
  }
  if (message.find("imed out") != std::string::npos) {
    throw Error("{}: {} was silent for pipeline.timeout, {} s", where, who, timeout_.count() / 1000);
  }
  throw Error("{}: {} is gone: {}", where, who, reason_in(message));
}

void Connections::fail(const Failure& failure) {
  rendezvous_->leave_word(failure);
  gloo_->close();
  rendezvous_->linger();
}

}  // namespace strait
