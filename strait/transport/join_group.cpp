#include "strait/transport/join_group.h"

#include "strait/transport/c10d/join_c10d_group.h"
#include "strait/transport/tcp/join_tcp_group.h"

namespace strait {

std::unique_ptr<Group> join_group(Carrier carrier, const Membership& membership,
                                  std::chrono::milliseconds timeout, const std::string& handshake,
                                  const CheckHandshakes& check, const WaitingFor& waiting) {
  const auto join = carrier == Carrier::tcp ? join_tcp_group : join_c10d_group;
  return join(membership, timeout, handshake, check, waiting);
}

}  // namespace strait
