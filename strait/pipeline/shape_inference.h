#pragma once

#include <functional>
#include <vector>

#include "strait/pipeline/stage_module.h"
#include "strait/transport/group.h"

namespace strait {

/// The shapes of one sample of each tensor that crosses a cut, without the batch dimension.
using CutShapes = std::vector<std::vector<int64_t>>;

/// Finds what crosses each cut, for all processes: runs a row of zeros, of the shape of `inputs`, through the
/// stages without autograd, modules in evaluation mode, and puts LibTorch's random state back. `runs` says
/// which stages are in this process. Collective. Throws InputError where a stage cannot run on what the one
/// before gives, with what the stage threw nested in it, and where that is not float32 with the rows as the
/// first dimension.
std::vector<CutShapes> infer_shapes(const std::vector<StageModule>& stages, const TensorList& inputs,
                                    const std::function<bool(int stage)>& runs, at::Device device,
                                    Group& group);

}  // namespace strait
