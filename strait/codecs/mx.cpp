#include <ATen/core/ivalue.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "strait/codecs/level_codec.h"
#include "strait/codecs/moments.h"
#include "strait/codecs/small_float.h"

namespace strait {
namespace {

constexpr size_t kBlock = 32;  // elements that share a scale

/// Blocks of 32 elements of the last dimension over a power of two (docs/operators.md, "mx"). What an element
/// is written as is the derived class's. Source: OCP Microscaling Formats 1.0.
class Microscaling : public LevelCodec {
 protected:
  /// `largest_exponent`: that of the format's largest number.
  Microscaling(CodecIdentity identity, unsigned bits, const kernels::CodeTable& table, int largest_exponent)
      : LevelCodec(std::move(identity), Scope::blocks_of_last_dimension(kBlock), Header::exponent, bits,
                   {table}),
        largest_exponent_(largest_exponent) {}

  void find_lines(std::span<const float> x, size_t size, std::span<Line> lines) const override {
    kernels::largest_magnitudes(x, size, lines);
    for (Line& line : lines) {
      if (!std::isfinite(line.scale)) continue;
      // Of a subnormal number the exponent reads as -127, as small as a scale's can be.
      const auto exponent = static_cast<int>(kernels::biased_exponent(line.scale));
      line.scale = power_of_two(static_cast<uint32_t>(std::max(exponent - largest_exponent_, 0)));
    }
  }

  Lines lines_of(const TensorGroups& groups) const override {
    constexpr int64_t kLeast = 1 << 22;  // 2^-127
    const at::Tensor largest = largest_magnitudes(groups);
    const at::Tensor exponent =
        largest.view(at::kInt).bitwise_right_shift(23).sub(largest_exponent_).clamp_min(0);
    const at::Tensor bits =
        at::where(exponent.eq(0), at::full_like(exponent, kLeast), exponent.bitwise_left_shift(23));
    return {{}, at::where(largest.isfinite(), bits.view(at::kFloat), largest)};
  }

 private:
  int largest_exponent_;
};

class MicroscalingFloat : public Microscaling {
 public:
  MicroscalingFloat(CodecIdentity identity, const kernels::SmallFloat& format)
      : Microscaling(std::move(identity), format.bits, table_of(format), std::ilogb(format.largest)),
        format_(format) {}

 protected:
  void write_codes(std::span<const float> x, const kernels::LineGroups& groups,
                   const kernels::Dither& /*dither*/, std::span<std::byte> out) const override {
    kernels::small_floats(x, groups, format_, out);
  }

  at::Tensor codes_of(const TensorGroups& groups, const Lines& lines) const override {
    return strait::codes_of(groups.values.div(lines.scale), format_);
  }

  std::optional<GroupForm> kernel_form() const override {
    return GroupForm{.levels = GroupForm::Levels::mx, .format = format_};
  }

 private:
  kernels::SmallFloat format_;
};

/// Two's complement in units of 1 / 64, from -127 to 127.
class MicroscalingInteger : public Microscaling {
 public:
  explicit MicroscalingInteger(CodecIdentity identity) : Microscaling(std::move(identity), 8, table(), 0) {}

 protected:
  void write_codes(std::span<const float> x, const kernels::LineGroups& groups,
                   const kernels::Dither& /*dither*/, std::span<std::byte> out) const override {
    kernels::fixed_points(x, groups, out);
  }

  at::Tensor codes_of(const TensorGroups& groups, const Lines& lines) const override {
    return groups.values.div(lines.scale).mul(64).clamp(-127, 127).round().to(at::kLong).bitwise_and(0xff);
  }

  std::optional<GroupForm> kernel_form() const override {
    return GroupForm{.levels = GroupForm::Levels::mx_integers};
  }

 private:
  static kernels::CodeTable table() {
    kernels::CodeTable table;
    for (size_t code = 0; code < table.size(); ++code) {
      table[code] = static_cast<float>(static_cast<int8_t>(code)) / 64;
    }
    table[0x80] = std::numeric_limits<float>::quiet_NaN();
    return table;
  }
};

}  // namespace

std::unique_ptr<Codec> make_mx(CodecIdentity identity, OperatorSpec spec) {
  const std::string name = spec.argument("the format");
  spec.finish();
  if (name == "int8") return std::make_unique<MicroscalingInteger>(std::move(identity));
  const auto format = small_float(name);
  if (!format) spec.reject("the format", name, "e4m3, e5m2, e3m2, e2m3, e2m1 or int8");
  return std::make_unique<MicroscalingFloat>(std::move(identity), *format);
}

}  // namespace strait
