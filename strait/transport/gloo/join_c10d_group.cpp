#include "strait/transport/c10d/join_c10d_group.h"

#include "strait/transport/c10d/c10d_group.h"
#include "strait/transport/gloo/gloo_connections.h"

namespace strait {

std::unique_ptr<Group> join_c10d_group(const Membership& membership, std::chrono::milliseconds timeout,
                                       const std::string& handshake, const CheckHandshakes& check,
                                       const WaitingFor& waiting) {
  auto rendezvous = std::make_unique<Rendezvous>(membership, timeout, waiting);
  const auto handshakes = rendezvous->exchange(handshake, waiting);
  try {
    check(handshakes);
  } catch (const Error&) {
    rendezvous->linger();  // the others may not have read them yet
    throw;
  }
  auto group = std::make_unique<C10dGroup>(GlooConnections::open(membership, std::move(rendezvous)));
  group->exchange_tokens();
  return group;
}

}  // namespace strait
