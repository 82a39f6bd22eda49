#pragma once

#include <cstdint>
#include <memory>

#include "strait/links/link.h"

namespace strait {

/// Makes the link of integers from 0 to below `limit`, which is 1 to 2^32: int64 tensors, which arrive as they
/// are, in two bytes each, or in four where the limit is above 2^16. They have no gradient, no codec touches
/// them, and evaluation sends them in every mode. Its frames have the codec `none` and a link id of their own.
/// Another value is a NumericError of the sender and a WireError of the receiver.
std::shared_ptr<const Link> make_integer_link(int64_t limit);

}  // namespace strait
