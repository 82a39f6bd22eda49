#include "strait/codecs/value_codec.h"

namespace strait {
namespace {

/// The tensor itself: 32 bits an element, little-endian.
class None : public ValueCodec {
 public:
  None() : ValueCodec(make_value_format("fp32")) {}
};

}  // namespace

std::unique_ptr<Codec> make_none(CodecSpec spec) {
  spec.no_argument();
  spec.finish();
  return std::make_unique<None>();
}

}  // namespace strait
