#include "strait/codecs/value_codec.h"

namespace strait {

/// IEEE binary16, rounded to nearest even. A value that rounds past 65504 is an error, not infinity.
std::unique_ptr<Codec> make_fp16(CodecIdentity identity, OperatorSpec spec) {
  spec.finish();
  return std::make_unique<ValueCodec>(std::move(identity), make_value_format("fp16"));
}

}  // namespace strait
