#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "python/src/bind.h"
#include "strait/pipeline/stage_module.h"

namespace strait::python {

/// The names of a batch's extras (PipelineBatch::extras), which all stages of a pipeline share.
using ExtraNames = std::shared_ptr<std::vector<std::string>>;

/// The names of the arguments of a stage; none where it takes any.
using ArgumentNames = std::optional<std::set<std::string>>;

/// A torch.nn.Module, or another callable, as a stage of a pipeline; None is a stage of another process. It is
/// given those extras that it has an argument for, by their names. A callable that proves in its first call to
/// use parameters which are trained throws InputError. The caller holds the GIL, and keeps what it gives as
/// long as the stage is called; the stage takes the GIL when it runs.
StageModule stage_of(const py::object& module, ArgumentNames arguments, ExtraNames extras);

/// A callable of the output and the targets as the loss. `correct`, a callable of the same that counts
/// predictions which were right, and `count`, one of the targets that says what the loss is a mean over, may be
/// None. As stage_of().
LossModule loss_of(const py::object& loss, const py::object& correct, const py::object& count);

}  // namespace strait::python
