#pragma once

#include "strait/transport/join_group.h"

namespace strait {

/// Joins the group of the membership over LibTorch's Gloo: meets the others in a store at the master's address.
/// The traffic is neither encrypted nor authenticated. Uses the network interface that GLOO_SOCKET_IFNAME
/// names, or else the one that leads to the master. Throws InputError where LibTorch comes without Gloo's
/// headers. For the rest see join_group().
std::unique_ptr<Group> join_c10d_group(const Membership& membership, std::chrono::milliseconds timeout,
                                       const std::string& handshake, const CheckHandshakes& check,
                                       const WaitingFor& waiting);

}  // namespace strait
