#pragma once

#include <cstdint>
#include <string>

namespace strait {

/// What this machine calls itself.
std::string host_name();

/// The processor's model, as the kernel calls it.
std::string processor_name();

/// Bytes of memory that could be taken without swapping, and no more than a container's limit.
uint64_t free_memory();

/// The version of strait and the commit that it was built from.
std::string code_version();

}  // namespace strait
