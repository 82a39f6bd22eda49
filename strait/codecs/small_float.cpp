#include "strait/codecs/small_float.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/where.h>

#include <cmath>

namespace strait {

std::optional<kernels::SmallFloat> small_float(std::string_view name) {
  if (name == "e4m3") return kernels::SmallFloat{3, 0x1p-6F, 448, 8};
  if (name == "e5m2") return kernels::SmallFloat{2, 0x1p-14F, 57344, 8};
  if (name == "e3m2") return kernels::SmallFloat{2, 0.25F, 28, 6};
  if (name == "e2m3") return kernels::SmallFloat{3, 1, 7.5F, 6};
  if (name == "e2m1") return kernels::SmallFloat{1, 1, 6, 4};
  return std::nullopt;
}

kernels::CodeTable table_of(const kernels::SmallFloat& format) {
  kernels::CodeTable table;
  table.fill(std::nanf(""));
  const unsigned magnitudes = 1U << (format.bits - 1);
  const unsigned steps = 1U << format.mantissa_bits;
  for (unsigned code = 0; code < magnitudes; ++code) {
    const auto exponent = static_cast<int>(code / steps);
    const unsigned mantissa = code % steps + (exponent > 0 ? steps : 0);
    const float step = std::ldexp(format.least_normal, std::max(exponent - 1, 0)) / static_cast<float>(steps);
    const float value = static_cast<float>(mantissa) * step;
    if (value > format.largest) continue;
    table[code] = value;
    table[code + magnitudes] = -value;
  }
  return table;
}

at::Tensor codes_of(const at::Tensor& values, const kernels::SmallFloat& format) {
  const auto cut = static_cast<int64_t>(23 - format.mantissa_bits);
  const int64_t exponent = kernels::biased_exponent(format.least_normal);
  const int64_t rebias = (exponent - 1) << format.mantissa_bits;
  const at::Tensor value = values.abs().clamp_max(static_cast<double>(format.largest));
  const at::Tensor bits = value.view(at::kInt).to(at::kLong);
  const at::Tensor is_odd = bits.bitwise_right_shift(cut).bitwise_and(1);
  const at::Tensor normal =
      bits.add(is_odd).add((int64_t{1} << (cut - 1)) - 1).bitwise_right_shift(cut).sub(rebias);
  const double step = format.least_normal / static_cast<double>(1U << format.mantissa_bits);
  const at::Tensor subnormal = value.div(step).round().to(at::kLong);
  const at::Tensor magnitude = at::where(value.lt(static_cast<double>(format.least_normal)), subnormal, normal);
  const int64_t sign = int64_t{1} << (format.bits - 1);
  return magnitude.add(values.signbit().to(at::kLong).mul(sign));
}

}  // namespace strait
