#pragma once

#include <torch/version.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace strait {

// What sends and receives tensors by tag is an object of its own in PyTorch 2, of which a process group has one
// for each kind of device; before, it was the process group.
#if TORCH_VERSION_MAJOR >= 2
using C10dBackend = c10d::Backend;
#else
using C10dBackend = c10d::ProcessGroup;
#endif

/// That for tensors of the CPU. Throws what LibTorch does where there is none.
inline c10::intrusive_ptr<C10dBackend> cpu_backend_of(
    const c10::intrusive_ptr<c10d::ProcessGroup>& process_group) {
#if TORCH_VERSION_MAJOR >= 2
  return process_group->getBackend(c10::DeviceType::CPU);
#else
  return process_group;
#endif
}

}  // namespace strait
