#include "strait/transport/join_group.h"

#include "strait/base/error.h"
#include "strait/transport/c10d/join_c10d_group.h"
#include "strait/transport/tcp/join_tcp_group.h"

namespace strait {

std::unique_ptr<Group> join_group(const Carriage& carriage, const Membership& membership,
                                  std::chrono::milliseconds timeout, const std::string& handshake,
                                  const CheckHandshakes& check, const WaitingFor& waiting,
                                  std::chrono::milliseconds patience) {
  if (carriage.connections < 1 || carriage.connections > kMostConnections) {
    throw InputError("connections: expected 1 to {}, found {}", kMostConnections, carriage.connections);
  }
  if (carriage.carrier == Carrier::c10d) return join_c10d_group(membership, timeout, handshake, check, waiting);
  return join_tcp_group(membership, carriage.connections, timeout, handshake, check, waiting,
                        std::max(timeout, patience));
}

}  // namespace strait
