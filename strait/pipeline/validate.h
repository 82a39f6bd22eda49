#pragma once

#include "strait/pipeline/plan.h"

namespace strait {

/// What a plan is to do with a batch.
enum class Passes { forward_only, forward_backward };

/// Whether the plan trains (it has a backward or a gradient message) or only evaluates.
Passes passes_of(const Plan& plan);

/// Proves of a lowered plan, in one pass over it:
/// - every action belongs to a stage of its rank, and every message crosses a boundary that exists;
/// - completeness: each stage does each micro-batch's forward (and backward) once, and each boundary sends
///   and receives each micro-batch's message once in each direction;
/// - order within a stage: receive, forward, send, receive, backward, send;
/// - order of micro-batches: increasing for every stage and operation. For messages because the state of
///   feedback makes their order part of the numbers; for forwards and backwards because the running
///   statistics of a normalisation and the sums of gradients do the same.
///
/// Throws InputError that names rank, position and action. Does not look for deadlock: simulate() does.
void validate(const Plan& plan, Passes passes);

}  // namespace strait
