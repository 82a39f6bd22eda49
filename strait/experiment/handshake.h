#pragma once

#include <memory>
#include <string>
#include <vector>

#include "strait/config/config.h"
#include "strait/transport/group.h"
#include "strait/transport/join_group.h"
#include "strait/transport/membership.h"

namespace strait {

/// What a process says of itself before the training begins, as JSON.
std::string handshake_of(const Config& config, int processes, const std::string& flags);

/// Compares the handshake of every rank, by rank, with that of `rank`. Throws Error that names one that differs
/// in what all must have alike, and WireError for a handshake that is not what a process says.
void check_handshakes(int rank, const std::vector<std::string>& handshakes);

/// Joins the processes that train the configuration together. `flags` are those of the command line that all
/// must have alike. Throws InputError when there is not one process for each stage, Error when another one has
/// another configuration, other flags or another code version, and what join_group() throws.
std::shared_ptr<Group> join_training(const Config& config, const Membership& membership,
                                     const std::string& flags, const WaitingFor& waiting);

}  // namespace strait
