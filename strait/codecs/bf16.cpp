#include "strait/codecs/value_codec.h"

namespace strait {

/// The upper half of a float32, rounded to nearest even: 8 bits of exponent, 8 of significand. A value
/// that rounds past 3.39e38 is an error, not infinity.
std::unique_ptr<Codec> make_bf16(CodecIdentity identity, OperatorSpec spec) {
  spec.finish();
  return std::make_unique<ValueCodec>(std::move(identity), make_value_format("bf16"));
}

}  // namespace strait
