#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <string>

#include "strait/links/link.h"

namespace strait::python {

/// The tensors that links carry from message to message, by name.
using StateTensors = std::map<std::string, at::Tensor>;

/// Shows the state of links to a visitor.
using VisitState = std::function<void(StateVisitor& visitor)>;

/// Copies of the state, whose names lose their first `prefix` letters.
StateTensors copy_state(const VisitState& visit, size_t prefix = 0);

/// Gives links a state that copy_state() made of some like them, in the place of their own. Throws InputError
/// that begins with `what`, whose state it is, and names the tensor that they do not have, or that is none.
void put_state(StateTensors state, const std::string& what, const VisitState& visit, size_t prefix = 0);

}  // namespace strait::python
