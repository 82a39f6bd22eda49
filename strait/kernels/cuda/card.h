#pragma once

namespace strait::kernels::cuda {

/// Whether the kernels have code for the calling thread's current device, which one that is older than all that
/// they were compiled for has not.
bool serve_this_card();

}  // namespace strait::kernels::cuda
