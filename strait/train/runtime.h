#pragma once

#include <c10/core/Device.h>

#include <string>

namespace strait {

/// Prepares the process for training: LibTorch's number of threads (0 means one for each core that the
/// process may run on, as its affinity says, shared with the `processes` on this machine), and an allocator
/// that keeps what it has, because a step frees and takes the same large blocks again and fresh pages from the
/// operating system cost a tenth of its time.
void configure_runtime(int threads, int processes = 1);

/// The device of a name (auto, cpu, cuda). Throws InputError when it is not there.
c10::Device device_of(const std::string& name);

/// What this machine calls itself.
std::string host_name();

/// The processor, the number of threads and LibTorch's version, for the record.
std::string machine_description();

/// The program's version and the commit it was built from.
std::string code_version();

}  // namespace strait
