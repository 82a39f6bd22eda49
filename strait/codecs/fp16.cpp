#include "strait/codecs/value_codec.h"

namespace strait {
namespace {

/// IEEE binary16, rounded to nearest even. A value that rounds past 65504 is an error, not infinity.
class Fp16 : public ValueCodec {
 public:
  explicit Fp16(CodecIdentity identity) : ValueCodec(std::move(identity), make_value_format("fp16")) {}
};

}  // namespace

std::unique_ptr<Codec> make_fp16(CodecIdentity identity, OperatorSpec spec) {
  spec.finish();
  return std::make_unique<Fp16>(std::move(identity));
}

}  // namespace strait
