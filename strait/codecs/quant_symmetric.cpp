#include <ATen/core/ivalue.h>

#include "strait/codecs/level_codec.h"

namespace strait {
namespace {

/// Steps of equal size from -s to s, the largest magnitude of the group (docs/operators.md, "quant").
class Symmetric : public LargestScaleCodec {
 public:
  Symmetric(CodecIdentity identity, Scope scope, unsigned bits, bool stochastic)
      : LargestScaleCodec(std::move(identity), scope, bits, uniform_table(bits)), stochastic_(stochastic) {}

 protected:
  void write_codes(std::span<const float> x, const kernels::LineGroups& groups, const kernels::Dither& dither,
                   std::span<std::byte> out) const override {
    if (stochastic_) return kernels::uniform_levels_stochastic(x, groups, bits(), dither, out);
    kernels::uniform_levels(x, groups, bits(), out);
  }

  at::Tensor codes_of(const TensorGroups& groups, const Lines& lines) const override {
    const at::Tensor t = in_uniform_steps(groups, lines.scale, bits());
    return signed_codes(stochastic_ ? rounded_randomly(t, groups) : t.round(), groups, bits());
  }

  std::optional<GroupForm> kernel_form() const override {
    return GroupForm{.levels = GroupForm::Levels::symmetric, .is_stochastic = stochastic_};
  }

 private:
  bool stochastic_;
};

}  // namespace

std::unique_ptr<Codec> make_symmetric_quant(CodecIdentity identity, Scope scope, unsigned bits,
                                            bool stochastic) {
  return std::make_unique<Symmetric>(std::move(identity), scope, bits, stochastic);
}

}  // namespace strait
