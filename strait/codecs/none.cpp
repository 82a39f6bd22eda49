#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/from_blob.h>

#include <atomic>

#include "strait/codecs/value_codec.h"
#include "strait/kernels/copy.h"

namespace strait {
namespace {

/// The tensor itself: 32 bits per element, little-endian.
class None : public ValueCodec {
 public:
  explicit None(CodecIdentity identity) : ValueCodec(std::move(identity), make_value_format("fp32")) {}

  at::Tensor reference(const at::Tensor& x) const override { return x.clone(); }

 protected:
  at::Tensor do_decode_tensor(ByteReader& in, const MessageMeta& meta,
                              const MessageContext& context) const override {
    if (!in.owner()) return Codec::do_decode_tensor(in, meta, context);
    const auto bytes = in.take(meta.elements() * sizeof(float));
    // The owner was received for this message alone, so that nobody minds if the tensor is written to.
    auto* data = reinterpret_cast<float*>(const_cast<std::byte*>(bytes.data()));
    const std::span<const float> values(data, meta.elements());
    std::atomic<bool> finite = true;
    at::parallel_for(0, static_cast<int64_t>(values.size()), kGrain, [&](int64_t begin, int64_t end) {
      const auto part = values.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
      if (!kernels::all_finite(part)) finite = false;
    });
    if (!finite) throw WireError("a float32 value is not finite");
    return at::from_blob(
        data, meta.shape, [owner = in.owner()](void*) {}, at::kFloat);
  }
};

}  // namespace

std::unique_ptr<Codec> make_none(CodecIdentity identity, OperatorSpec spec) {
  spec.finish();
  return std::make_unique<None>(std::move(identity));
}

}  // namespace strait
