#include <ATen/core/ivalue.h>
#include <ATen/ops/zeros_like.h>

#include "strait/codecs/elias.h"
#include "strait/codecs/level_codec.h"
#include "strait/codecs/moments.h"

namespace strait {
namespace {

/// norm2 / s times a whole number, rounded at random, s = 2^(b - 1) - 1 (docs/operators.md, "qsgd").
/// Source: Alistarh et al. 2017.
class Qsgd : public LevelCodec {
 public:
  Qsgd(CodecIdentity identity, Scope scope, unsigned bits)
      : LevelCodec(std::move(identity), scope, Header::scale, bits, {uniform_table(bits)}) {}

 protected:
  void find_lines(std::span<const float> x, size_t size, std::span<Line> lines) const override {
    find_each(x, size, lines, [](std::span<const float> group) { return Line{0, norm_about(group, 0)}; });
  }

  Lines lines_of(const TensorGroups& groups) const override {
    return {{}, norms_about(groups, at::zeros_like(groups.sizes, at::kFloat))};
  }

  void write_codes(std::span<const float> x, const kernels::LineGroups& groups, const kernels::Dither& dither,
                   std::span<std::byte> out) const override {
    kernels::uniform_levels_stochastic(x, groups, bits(), dither, out);
  }

  at::Tensor codes_of(const TensorGroups& groups, const Lines& lines) const override {
    const auto most = static_cast<double>(kernels::signed_levels(bits()));
    const at::Tensor t = in_uniform_steps(groups, lines.scale, bits()).clamp_max(most);
    return signed_codes(rounded_randomly(t, groups), groups, bits());
  }
};

}  // namespace

std::unique_ptr<Codec> make_qsgd(CodecIdentity identity, OperatorSpec spec) {
  const unsigned bits = bits_from(spec, 2);
  const Scope scope = Scope::from(spec, "block:512");
  const std::string code = spec.option("code", "fixed");
  if (code != "fixed" && code != "elias") spec.reject("code", code, "fixed or elias");
  spec.finish();
  auto fixed = std::make_unique<Qsgd>(identity, scope, bits);
  if (code == "fixed") return fixed;
  return make_elias(identity, scope, bits, std::move(fixed));
}

}  // namespace strait
