#pragma once

#include <memory>

#include "strait/codecs/codec.h"
#include "strait/codecs/groups.h"

namespace strait {

/// Writes the signed levels of a codec of float32 scales (kernels/levels.h) in Elias's gamma code in place of
/// codes of `bits` bits: short where most levels are small. `fixed` has groups of this scope.
std::unique_ptr<Codec> make_elias(CodecIdentity identity, Scope scope, unsigned bits,
                                  std::shared_ptr<const Codec> fixed);

}  // namespace strait
