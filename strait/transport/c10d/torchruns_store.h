#pragma once

#include <chrono>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "strait/transport/membership.h"

namespace strait {

/// The part of torchrun's store that belongs to the attempt, with this rank's place in it taken. Throws
/// RankTaken when another process has taken it, Error when torchrun does not answer.
c10::intrusive_ptr<c10d::Store> open_torchruns_store(const Membership& membership,
                                                     std::chrono::milliseconds timeout);

/// The port at which rank 0 listens where torchrun has the master's: rank 0 tells it, the others wait for it.
/// Throws Error when it is not told within the timeout.
void tell_port(c10d::Store& store, uint16_t port);
uint16_t told_port(const c10::intrusive_ptr<c10d::Store>& store, const Membership& membership,
                   std::chrono::milliseconds timeout);

}  // namespace strait
