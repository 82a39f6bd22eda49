#pragma once

#include <chrono>

#include "strait/pipeline/nccl_library.h"

namespace strait::fake {

/// What stands in NCCL's place on the fake device, between threads of one process. A receive waits `patience`
/// for the other end; where nothing comes, the device does not go on (hold()).
const NcclLibrary& nccl();

/// How long a receive waits for its message; 20 s from the beginning on.
void set_patience(std::chrono::milliseconds patience);

/// Messages that were sent since the last call.
int take_nccl_messages();

}  // namespace strait::fake
