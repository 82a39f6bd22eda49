#pragma once

#include "strait/transport/join_group.h"

namespace strait {

/// Joins the group of the membership over strait's own connections: those of ranks of one machine are sockets
/// of the file system that only the user can open; those of several are TCP with TLS 1.3, for which every rank
/// needs the run's secret (secret.h). For the rest see join_group().
std::unique_ptr<Group> join_tcp_group(const Membership& membership, int connections,
                                      std::chrono::milliseconds timeout, const std::string& handshake,
                                      const CheckHandshakes& check, const WaitingFor& waiting,
                                      std::chrono::milliseconds patience);

}  // namespace strait
