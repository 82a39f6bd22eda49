#include <ATen/core/ivalue.h>
#include <ATen/ops/cat.h>

#include <atomic>

#include "strait/codecs/codec.h"
#include "strait/codecs/composed.h"
#include "strait/codecs/finite.h"
#include "strait/codecs/groups.h"
#include "strait/codecs/quant_group.h"
#include "strait/kernels/natural.h"

namespace strait {
namespace {

/// The sign and a power of two, rounded at random to one of the two neighbours: 9 bits an element
/// (docs/operators.md, "natural"). Source: Horvath et al. 2022.
class Natural : public Codec {
 public:
  explicit Natural(CodecIdentity identity) : Codec(std::move(identity)) {}

  at::Tensor reconstruct(const at::Tensor& x, const MessageContext& context) const override {
    return x.numel() == 0 ? x.clone(at::MemoryFormat::Contiguous) : rounded(x.contiguous(), context);
  }

  at::Tensor device_encode(const at::Tensor& x, const MessageContext& context) const override {
    const at::Tensor bits = rounded(x, context).view(at::kInt).view({1, -1});
    const at::Tensor exponents = bits.bitwise_right_shift(23).bitwise_and(kExponents);
    return at::cat({packed_rows(bits.lt(0).to(at::kLong), 1).view(-1), exponents.to(at::kByte).view(-1)});
  }

  at::Tensor device_decode(const at::Tensor& payload, const MessageMeta& meta,
                           const MessageContext& /*context*/) const override {
    const auto n = static_cast<int64_t>(meta.elements());
    const int64_t size = payload.numel() - n;
    const at::Tensor signs = unpacked_rows(payload.narrow(0, 0, size).view({1, -1}), n, 1);
    const at::Tensor exponents = payload.narrow(0, size, n).to(at::kLong);
    if (!signs.defined() || !are_all(exponents.lt(kExponents))) return {};
    const at::Tensor bits = signs.view(-1).mul(kSign).bitwise_or(exponents.bitwise_left_shift(23));
    return bits.to(at::kInt).view(at::kFloat).view(meta.shape);
  }

  bool is_row_wise() const override { return true; }

 protected:
  PayloadSize do_payload_size(const MessageMeta& meta) const override {
    return {kernels::packed_size(meta.elements(), 1) + meta.elements(), true};
  }

  void do_encode(std::span<const float> x, const MessageMeta& meta, const MessageContext& context,
                 ByteWriter& out) const override {
    const auto signs = out.claim(kernels::packed_size(x.size(), 1));
    const auto exponents = out.claim(x.size());
    const kernels::Dither dither = make_dither(context, meta);
    std::atomic<bool> fits = true;
    in_parts(x.size(), [&](size_t begin, size_t count) {
      if (!kernels::to_powers(x.subspan(begin, count), advanced(dither, begin), signs_of(signs, begin, count),
                              exponents.subspan(begin, count))) {
        fits = false;
      }
    });
    if (!fits) throw NumericError("a value is not finite, or past 2^127");
  }

  void do_decode(ByteReader& in, const MessageMeta& /*meta*/, const MessageContext& /*context*/,
                 std::span<float> out) const override {
    const auto signs = in.take(kernels::packed_size(out.size(), 1));
    const auto exponents = in.take(out.size());
    check_padding(signs, out.size(), 1);
    std::atomic<bool> is_finite = true;
    in_parts(out.size(), [&](size_t begin, size_t count) {
      if (!kernels::from_powers(signs_of(signs, begin, count), exponents.subspan(begin, count),
                                out.subspan(begin, count))) {
        is_finite = false;
      }
    });
    if (!is_finite) throw WireError("an exponent is 255");
  }

 private:
  static constexpr uint32_t kOverflow = (254U << 23) + 1;  // what is above 2^127
  static constexpr int64_t kSign = -0x80000000LL;
  static constexpr int64_t kExponents = 0xff;

  /// What the receiver sees of x, contiguous.
  static at::Tensor rounded(const at::Tensor& x, const MessageContext& context) {
    check_largest(largest_magnitude(x), kOverflow, "natural");
    const at::Tensor bits = x.view(at::kInt);
    const at::Tensor rest = bits.bitwise_and(0x7fffff).to(at::kFloat).mul(0x1p-23);
    const at::Tensor up = dither_of(context, meta_of(x), x).view(x.sizes()).lt(rest).to(at::kInt);
    const at::Tensor exponent = bits.bitwise_right_shift(23).bitwise_and(kExponents).add(up);
    return exponent.bitwise_left_shift(23).bitwise_or(bits.bitwise_and(kSign)).view(at::kFloat);
  }

  template <class Byte>
  static std::span<Byte> signs_of(std::span<Byte> all, size_t begin, size_t count) {
    return all.subspan(begin / 8, kernels::packed_size(count, 1));
  }
};

}  // namespace

std::unique_ptr<Codec> make_natural(CodecIdentity identity, OperatorSpec spec) {
  spec.finish();
  return std::make_unique<Natural>(std::move(identity));
}

}  // namespace strait
