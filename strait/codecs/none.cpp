#include <cstring>

#include "strait/codecs/codec.h"
#include "strait/kernels/copy.h"

namespace strait {
namespace {

/// The tensor itself: 32 bits an element, little-endian.
class None : public Codec {
 public:
  at::Tensor reconstruct(const at::Tensor& x, const MessageContext& /*context*/) const override {
    return x.clone();
  }

 protected:
  PayloadSize do_payload_size(const MessageMeta& meta) const override {
    return {meta.elements() * sizeof(float), true};
  }

  void do_encode(std::span<const float> x, const MessageMeta& /*meta*/, const MessageContext& /*context*/,
                 ByteWriter& out) const override {
    if (!kernels::copy_finite(x, out.claim(x.size_bytes()))) throw NumericError("a value is not finite");
  }

  void do_decode(ByteReader& in, const MessageMeta& /*meta*/, const MessageContext& /*context*/,
                 std::span<float> out) const override {
    const auto bytes = in.take(out.size_bytes());
    std::memcpy(out.data(), bytes.data(), bytes.size());
  }
};

}  // namespace

std::unique_ptr<Codec> make_none(CodecSpec spec) {
  spec.no_argument();
  spec.finish();
  return std::make_unique<None>();
}

}  // namespace strait
