#pragma once

#include <memory>

#include "strait/base/link_rate.h"
#include "strait/transport/group.h"

namespace strait {

/// The group, as if what this process sends over transports went over a link of that rate and latency, one wire
/// for all of them (EmulatedLink). Everything else (texts, tensors, control messages) goes as it does in the
/// group. Each rank may have another link, or none.
std::shared_ptr<Group> over_link(std::shared_ptr<Group> group, const LinkRate& link);

}  // namespace strait
