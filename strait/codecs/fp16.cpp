#include "strait/codecs/value_codec.h"

namespace strait {
namespace {

/// IEEE binary16, rounded to nearest even. A value that rounds past 65504 is an error, not infinity.
class Fp16 : public ValueCodec {
 public:
  Fp16() : ValueCodec(make_value_format("fp16")) {}
};

}  // namespace

std::unique_ptr<Codec> make_fp16(CodecSpec spec) {
  spec.no_argument();
  spec.finish();
  return std::make_unique<Fp16>();
}

}  // namespace strait
