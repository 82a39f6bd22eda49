#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "strait/config/config.h"
#include "strait/transport/group.h"
#include "strait/transport/join_group.h"
#include "strait/transport/membership.h"

namespace strait {

/// The keys that all processes must have alike, with their values: all but those of places,
/// devices and the emulated link.
std::vector<std::pair<std::string, std::string>> shared_settings(const Config& config);

/// pipeline.timeout.
std::chrono::milliseconds timeout_of(const Config& config);

/// What a process says of itself before the training begins, as JSON.
std::string handshake_of(const Config& config, int processes, const std::string& flags);

/// Joins the processes that train the configuration together. `flags` are those of the command line that all
/// must have alike. Throws InputError when there is not one process for each stage, Error when another one has
/// another configuration, other flags or another code version, and what join_group() throws.
std::shared_ptr<Group> join_training(const Config& config, const Membership& membership,
                                     const std::string& flags, const WaitingFor& waiting);

}  // namespace strait
