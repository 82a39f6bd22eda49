#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include <atomic>
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
    const auto bytes = out.claim(x.size_bytes());
    std::atomic<bool> finite = true;
    at::parallel_for(0, static_cast<int64_t>(x.size()), kGrain, [&](int64_t begin, int64_t end) {
      const auto part = x.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
      const auto space = bytes.subspan(static_cast<size_t>(begin) * sizeof(float), part.size_bytes());
      if (!kernels::copy_finite(part, space)) finite = false;
    });
    if (!finite) throw NumericError("a value is not finite");
  }

  void do_decode(ByteReader& in, const MessageMeta& /*meta*/, const MessageContext& /*context*/,
                 std::span<float> out) const override {
    const auto bytes = in.take(out.size_bytes());
    std::memcpy(out.data(), bytes.data(), bytes.size());
  }

  at::Tensor do_decode_tensor(ByteReader& in, const MessageMeta& meta,
                              const MessageContext& context) const override {
    if (!in.owner()) return Codec::do_decode_tensor(in, meta, context);
    const auto bytes = in.take(meta.elements() * sizeof(float));
    // The owner was received for this message alone, so that nobody minds if the tensor is written to.
    auto* data = const_cast<std::byte*>(bytes.data());
    return at::from_blob(
        data, meta.shape, [owner = in.owner()](void*) {}, at::kFloat);
  }

 private:
  static constexpr int64_t kGrain = 1 << 16;  // elements a thread copies at least
};

}  // namespace

std::unique_ptr<Codec> make_none(CodecSpec spec) {
  spec.no_argument();
  spec.finish();
  return std::make_unique<None>();
}

}  // namespace strait
