#include <ATen/core/ivalue.h>
#include <ATen/ops/where.h>

#include <cmath>

#include "strait/codecs/composed.h"
#include "strait/codecs/group_codec.h"
#include "strait/kernels/signs.h"
#include "strait/kernels/sums.h"

namespace strait {
namespace {

/// The sign of every element, times the mean magnitude of its group, which is the scale that leaves the least
/// square error (docs/operators.md, "sign"). -0 counts as positive. Source: Karimireddy et al. 2019, arXiv
/// 1901.09847.
class Sign : public OneByOneCodec {
 public:
  Sign(CodecIdentity identity, Scope scope) : OneByOneCodec(std::move(identity), scope, sizeof(float), 1) {}

 protected:
  void encode_group(std::span<const float> x, const kernels::Dither& /*dither*/, ByteWriter& header,
                    std::span<std::byte> codes) const override {
    const float sum = kernels::sum_of_magnitudes(x);
    if (!std::isfinite(sum)) reject();
    header.put(sum / static_cast<float>(x.size()));
    kernels::pack_signs(x, codes);
  }

  void decode_group(ByteReader& header, std::span<const std::byte> codes, std::span<float> out) const override {
    const auto scale = header.get<float>();
    if (!std::isfinite(scale) || std::signbit(scale)) throw WireError("{} is not a mean magnitude", scale);
    kernels::unpack_signs(codes, scale, -scale, out);
  }

  CodedGroups code_groups(const TensorGroups& groups) const override {
    const at::Tensor sum = ordered_sum(groups.values.abs());
    if (!are_all(sum.isfinite())) reject();
    return {bytes_of_rows(sum.div(groups.sizes)), groups.values.lt(0).to(at::kLong)};
  }

  at::Tensor values_of(const CodedGroups& groups) const override {
    const at::Tensor scale = rows_of_bytes(groups.headers, at::kFloat);
    if (!are_all(scale.isfinite().logical_and(scale.signbit().logical_not()))) return {};
    return at::where(groups.codes.eq(0), scale, scale.neg());
  }

 private:
  [[noreturn]] static void reject() {
    throw NumericError("a value is not finite, or the sum of the magnitudes of a group is past float32");
  }
};

}  // namespace

std::unique_ptr<Codec> make_sign(CodecIdentity identity, OperatorSpec spec) {
  const Scope scope = Scope::from(spec, "sample");
  spec.finish();
  return std::make_unique<Sign>(std::move(identity), scope);
}

}  // namespace strait
