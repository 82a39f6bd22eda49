#include <ATen/core/ivalue.h>
#include <ATen/ops/full_like.h>

#include "strait/codecs/level_codec.h"
#include "strait/codecs/moments.h"
#include "strait/codecs/small_float.h"

namespace strait {
namespace {

constexpr size_t kBlock = 128;  // elements that share a scale

/// Blocks of 128 elements over their scale, which brings the largest to the format's largest number
/// (docs/operators.md, "fp8"). Source: DeepSeek-V3 technical report, section 3.3.
class Fp8 : public LevelCodec {
 public:
  Fp8(CodecIdentity identity, const kernels::SmallFloat& format)
      : LevelCodec(std::move(identity), Scope::blocks(kBlock), Header::scale, format.bits, {table_of(format)}),
        format_(format) {}

 protected:
  void find_lines(std::span<const float> x, size_t size, std::span<Line> lines) const override {
    kernels::largest_magnitudes(x, size, lines);
    for (Line& line : lines) line.scale /= format_.largest;
  }

  Lines lines_of(const TensorGroups& groups) const override {
    const at::Tensor largest = largest_magnitudes(groups);
    return {{}, over_scale(largest, at::full_like(largest, format_.largest))};
  }

  void write_codes(std::span<const float> x, const kernels::LineGroups& groups,
                   const kernels::Dither& /*dither*/, std::span<std::byte> out) const override {
    kernels::small_floats(x, groups, format_, out);
  }

  at::Tensor codes_of(const TensorGroups& groups, const Lines& lines) const override {
    return strait::codes_of(over_scale(groups.values, lines.scale), format_);
  }

  std::optional<GroupForm> kernel_form() const override {
    return GroupForm{.levels = GroupForm::Levels::fp8, .format = format_};
  }

 private:
  kernels::SmallFloat format_;
};

}  // namespace

std::unique_ptr<Codec> make_fp8(CodecIdentity identity, OperatorSpec spec) {
  const std::string& name = spec.argument("the format");
  const auto format = small_float(name);
  if (!format || format->bits != 8) spec.reject("the format", name, "e4m3 or e5m2");
  spec.finish();
  return std::make_unique<Fp8>(std::move(identity), *format);
}

}  // namespace strait
