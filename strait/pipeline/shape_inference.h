#pragma once

#include <functional>
#include <vector>

#include "strait/pipeline/cut.h"
#include "strait/pipeline/stage_module.h"
#include "strait/transport/group.h"

namespace strait {

/// Finds what crosses each cut, for all processes: runs a row through the stages, modules in evaluation mode,
/// and puts LibTorch's random state back. The first stage gets the first row of `inputs`, the others zeros of
/// the shape of what the one before gives, which require gradients as that does; all of them the first row of
/// `extras` behind that. `runs` says which stages are in this process.
///
/// Where none of a stage's outputs requires a gradient although the stage has parameters that are trained, or
/// inputs that require one, all are said to have one: such a module may work in training in another way.
///
/// Collective. Throws InputError where a stage cannot run on that, with what the stage threw nested in it, and
/// where it gives anything but float32, float16, bfloat16, integers and bool with the rows as the first
/// dimension.
Cuts infer_cuts(const std::vector<StageModule>& stages, const TensorList& inputs, const TensorList& extras,
                const std::function<bool(int stage)>& runs, at::Device device, Group& group);

}  // namespace strait
