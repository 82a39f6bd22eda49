#include <ATen/core/ivalue.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>

#include "strait/codecs/composed.h"
#include "strait/codecs/group_codec.h"
#include "strait/kernels/signs.h"
#include "strait/kernels/sums.h"

namespace strait {
namespace {

/// One bit an element: those >= 0 become their mean, and those < 0 theirs, group by group (docs/operators.md,
/// "onebit"). Source: Seide et al., Interspeech 2014.
class OneBit : public OneByOneCodec {
 public:
  OneBit(CodecIdentity identity, Scope scope)
      : OneByOneCodec(std::move(identity), scope, 2 * sizeof(float), 1) {}

 protected:
  void encode_group(std::span<const float> x, const kernels::Dither& /*dither*/, ByteWriter& header,
                    std::span<std::byte> codes) const override {
    const kernels::Sides sides = kernels::sums_by_sign(x);
    if (!std::isfinite(sides.positive) || !std::isfinite(sides.negative)) reject();
    header.put(mean(sides.negative, sides.negatives));
    header.put(mean(sides.positive, x.size() - sides.negatives));
    kernels::pack_signs(x, codes);
  }

  void decode_group(ByteReader& header, std::span<const std::byte> codes, std::span<float> out) const override {
    const auto below = header.get<float>();
    const auto above = header.get<float>();
    const bool is_zero_plain = !(below == 0 && std::signbit(below)) && !std::signbit(above);
    if (!std::isfinite(below) || !std::isfinite(above) || below > 0 || !is_zero_plain) {
      throw WireError("{} and {} are not the means below and above 0", below, above);
    }
    if (below != 0 && std::ranges::all_of(codes, [](std::byte b) { return b == std::byte{0}; })) {
      throw WireError("no element is below 0, but their mean is {}", below);
    }
    kernels::unpack_signs(codes, above, below, out);
  }

  CodedGroups code_groups(const TensorGroups& groups) const override {
    const at::Tensor is_below = groups.values.lt(0);
    const at::Tensor negative = ordered_sum(groups.values.masked_fill(is_below.logical_not(), 0));
    const at::Tensor positive = ordered_sum(groups.values.masked_fill(is_below, 0));
    if (!are_all(positive.isfinite().logical_and(negative.isfinite()))) reject();
    const at::Tensor negatives = is_below.sum(1, /*keepdim=*/true);
    const auto mean_of = [](const at::Tensor& sum, const at::Tensor& count) {
      return sum.div(count.clamp_min(1).to(at::kFloat)).add(0.0);
    };
    const at::Tensor above = mean_of(positive, groups.sizes.sub(negatives));
    return {bytes_of_rows(at::cat({mean_of(negative, negatives), above}, 1)), is_below.to(at::kLong)};
  }

  at::Tensor values_of(const CodedGroups& groups) const override {
    const at::Tensor means = rows_of_bytes(groups.headers, at::kFloat);
    const at::Tensor below = means.narrow(1, 0, 1);
    const at::Tensor above = means.narrow(1, 1, 1);
    const at::Tensor is_below = groups.codes.ne(0);
    const at::Tensor in_place = below.le(0).logical_and(above.signbit().logical_not());
    const at::Tensor needed = below.eq(0).logical_or(is_below.any(1, /*keepdim=*/true));
    const at::Tensor sound = in_place.logical_and(needed).logical_and(is_negative_zero(below).logical_not());
    if (!are_all(means.isfinite()) || !are_all(sound)) return {};
    return at::where(is_below, below, above);
  }

 private:
  /// Of no element: 0. Adding +0 turns -0 into +0.
  static float mean(float sum, size_t count) {
    return sum / static_cast<float>(std::max<size_t>(count, 1)) + 0.0F;
  }

  [[noreturn]] static void reject() {
    throw NumericError("a value is not finite, or the sum of the values of a group is past float32");
  }
};

}  // namespace

std::unique_ptr<Codec> make_onebit(CodecIdentity identity, OperatorSpec spec) {
  const Scope scope = Scope::from(spec, "sample");
  spec.finish();
  return std::make_unique<OneBit>(std::move(identity), scope);
}

}  // namespace strait
