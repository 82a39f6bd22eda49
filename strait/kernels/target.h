#pragma once

#include <string>
#include <vector>

namespace strait::kernels {

// Kernels are compiled for several instruction sets (Highway's targets: AVX3 is AVX-512), all of which give the
// same bits. The best one that the processor has is taken, or the one that the variable
// STRAIT_KERNELS names; SCALAR is that of every processor, which Highway calls EMU128 with newer compilers.

/// What this processor can run of what was compiled, the best first.
std::vector<std::string> kernel_targets();

}  // namespace strait::kernels
