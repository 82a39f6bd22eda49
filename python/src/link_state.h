#pragma once

#include <functional>
#include <map>
#include <string>

#include "strait/links/link.h"

namespace strait::python {

/// The tensors of links by their names, as a state_dict has them.
using LinkState = std::map<std::string, at::Tensor>;

/// Shows the links' tensors to a visitor.
using VisitLinks = std::function<void(StateVisitor& visitor)>;

/// Copies of all of them.
LinkState copy_state(const VisitLinks& visit);

/// Gives each the tensor of its name. Throws InputError for a tensor of which there is no link.
void load_state(const VisitLinks& visit, const LinkState& state);

}  // namespace strait::python
