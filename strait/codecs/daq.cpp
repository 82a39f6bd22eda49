#include <ATen/core/ivalue.h>
#include <ATen/ops/full_like.h>

#include <array>

#include "strait/codecs/level_codec.h"
#include "strait/codecs/moments.h"

namespace strait {
namespace {

/// Steps of uniform size that leave the least mean square error of N(0, 1) with 2^b of them (Max 1960), b
/// = 1..8.
constexpr std::array<float, 8> kSteps = {1.59576913F,  0.995686682F, 0.586019428F,  0.335200599F,
                                         0.188138786F, 0.104063013F, 0.0568676754F, 0.0307623879F};

/// Uniform steps around the group's mean, as wide as is best for normal numbers of its deviation
/// (docs/operators.md, "daq").
class Daq : public LevelCodec {
 public:
  Daq(CodecIdentity identity, Scope scope, unsigned bits)
      : LevelCodec(std::move(identity), scope, Header::offset_and_scale, bits, {table_of(bits)}) {}

 protected:
  void find_lines(std::span<const float> x, size_t size, std::span<Line> lines) const override {
    find_each(x, size, lines, mean_and_deviation);
  }

  Lines lines_of(const TensorGroups& groups) const override { return means_and_deviations(groups); }

  void write_codes(std::span<const float> x, const kernels::LineGroups& groups,
                   const kernels::Dither& /*dither*/, std::span<std::byte> out) const override {
    kernels::clipped_steps(x, groups, kSteps[bits() - 1], bits(), out);
  }

  at::Tensor codes_of(const TensorGroups& groups, const Lines& lines) const override {
    const auto half = static_cast<double>(1U << (bits() - 1));
    const at::Tensor t = over_scale(groups.values.sub(lines.offset), lines.scale);
    const at::Tensor step = at::full_like(lines.scale, kSteps[bits() - 1]);
    return t.div(step).floor().clamp(-half, half - 1).add(half).to(at::kLong);
  }

 private:
  /// The middles of the steps.
  static kernels::CodeTable table_of(unsigned bits) {
    kernels::CodeTable table{};
    const float least = static_cast<float>((1U << bits) - 1) / 2;
    for (unsigned code = 0; code < 1U << bits; ++code)
      table[code] = (static_cast<float>(code) - least) * kSteps[bits - 1];
    return table;
  }
};

}  // namespace

std::unique_ptr<Codec> make_daq(CodecIdentity identity, OperatorSpec spec) {
  const unsigned bits = bits_from(spec, 1);
  const Scope scope = Scope::from(spec, "channel");
  spec.finish();
  return std::make_unique<Daq>(std::move(identity), scope, bits);
}

}  // namespace strait
