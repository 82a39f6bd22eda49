#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace strait {

/// What this machine calls itself.
std::string host_name();

/// Tells this machine, or this container on one, from others until it is started again.
std::string machine_mark();

/// The processor's model, as the kernel calls it.
std::string processor_name();

/// The models of the NVIDIA cards that the kernel drives, each once: `NVIDIA H200`. Empty where there are none.
std::vector<std::string> card_names();

/// Bytes of memory that could be taken without swapping, and no more than a container's limit.
uint64_t free_memory();

/// The version of strait and the commit that it was built from.
std::string code_version();

}  // namespace strait
