#pragma once

#include <memory>

#include "strait/codecs/codec.h"
#include "strait/codecs/groups.h"

namespace strait {

// What make_quant() puts together for the options of `quant` (docs/operators.md).

/// levels=symmetric: 2 <= bits <= 8.
std::unique_ptr<Codec> make_symmetric_quant(CodecIdentity identity, Scope scope, unsigned bits,
                                            bool stochastic);

/// rotate=hadamard: rotates blocks of 64 elements of a row and hands them to `inner`, which is row-wise or not.
std::unique_ptr<Codec> make_rotated(CodecIdentity identity, std::shared_ptr<const Codec> inner);

/// spikes=1: the least and the greatest element of each group beside what `inner` does with the rest.
std::unique_ptr<Codec> make_spiked(CodecIdentity identity, Scope scope, std::shared_ptr<const Codec> inner);

}  // namespace strait
