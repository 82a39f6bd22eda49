#pragma once

#include <functional>
#include <string>

#include "strait/pipeline/pipeline.h"

// What a Pipeline asks of its setup before it makes anything of it. All throw InputError.
namespace strait {

/// The schedule must be known, and leave the optimizer's steps to the pipeline's user.
void check_schedule(const Schedule& schedule);

/// One boundary behind each stage but the last, each with a name of its own and links that take micro-batches
/// where there are several.
void check_boundaries(const PipelineSetup& setup);

/// The link between replicas may keep nothing per sample or class, and needs no message's previous one.
void check_replica_link(const Link& link);

/// Parameters must be where the pipeline is, but those of other processes' stages may be anywhere, such as on
/// meta. Each must be in one stage, which alone steps it.
void check_parameters(const PipelineSetup& setup, const std::function<bool(int stage)>& runs);

/// What so many processes must have alike, as the text of a Handshake.
std::string setup_text(const PipelineSetup& setup, int processes);

}  // namespace strait
