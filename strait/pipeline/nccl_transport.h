#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "strait/pipeline/nccl_library.h"
#include "strait/transport/group.h"

namespace strait {

/// Where a process's payloads may stay, and for how long it waits for another's.
struct NcclOptions {
  c10::Device device = c10::kCPU;     ///< of the process's stages
  std::chrono::milliseconds timeout;  ///< of a wait
};

/// The transport, but where both ends of a boundary have a CUDA device payloads go from the one to the other by
/// NCCL, neither encrypted nor authenticated; frames, and payloads that cannot, go as before. A boundary has a
/// communicator of its own for each direction, since operations of one wait for each other.
///
/// Collective; boundary `b` leads to rank peers[b] and is called names[b], as for Group::make_transport(). The
/// group must outlive it. Throws InputError where no boundary has devices at both ends, Error or PeerError that
/// names the boundary where NCCL cannot connect, and what nccl_library() does.
std::unique_ptr<Transport> over_nccl(std::unique_ptr<Transport> transport, Group& group,
                                     const std::vector<int>& peers, const std::vector<std::string>& names,
                                     const NcclOptions& options,
                                     const NcclLibrary& (*library)() = nccl_library);

}  // namespace strait
