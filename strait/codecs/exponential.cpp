#include <ATen/core/ivalue.h>
#include <ATen/ops/where.h>

#include <cmath>

#include "strait/codecs/level_codec.h"

namespace strait {
namespace {

/// 0 and 2^-j times the group's largest magnitude, rounded at random to one of the two neighbours
/// (docs/operators.md, "exponential").
class Exponential : public LargestScaleCodec {
 public:
  Exponential(CodecIdentity identity, Scope scope, unsigned bits)
      : LargestScaleCodec(std::move(identity), scope, bits, signed_table(bits, [=](int level) {
                            const float magnitude = std::ldexp(
                                1.0F, std::abs(level) - static_cast<int>(kernels::signed_levels(bits)));
                            return level == 0 ? 0 : std::copysign(magnitude, static_cast<float>(level));
                          })) {}

 protected:
  void write_codes(std::span<const float> x, const kernels::LineGroups& groups, const kernels::Dither& dither,
                   std::span<std::byte> out) const override {
    kernels::exponential_levels(x, groups, bits(), dither, out);
  }

  at::Tensor codes_of(const TensorGroups& groups, const Lines& lines) const override {
    const auto greatest = static_cast<int>(kernels::signed_levels(bits()));
    const at::Tensor t = over_scale(groups.values.abs(), lines.scale);
    const at::Tensor pattern = t.view(at::kInt);
    const at::Tensor lower = pattern.bitwise_right_shift(23).sub(127 - greatest);  // of a level above 0
    const at::Tensor mantissa = pattern.bitwise_and(0x7fffff).bitwise_or(127 << 23).view(at::kFloat).sub(1);
    const at::Tensor is_least = lower.lt(1);
    const at::Tensor rest = at::where(is_least, t.mul(std::ldexp(1.0, greatest - 1)), mantissa);
    const at::Tensor level = lower.clamp_min(0).add(groups.dither().lt(rest).to(at::kInt));
    return signed_codes(level, groups, bits());
  }
};

}  // namespace

std::unique_ptr<Codec> make_exponential(CodecIdentity identity, OperatorSpec spec) {
  const unsigned bits = bits_from(spec, 2);
  const Scope scope = Scope::from(spec, "sample");
  spec.finish();
  return std::make_unique<Exponential>(std::move(identity), scope, bits);
}

}  // namespace strait
