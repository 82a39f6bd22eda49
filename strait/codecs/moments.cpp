#include "strait/codecs/moments.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>

#include "strait/kernels/levels.h"
#include "strait/kernels/sums.h"

namespace strait {
namespace {

constexpr int kLeastExponent = -126;  // of a normal number

/// x - center, and 0 behind the elements of a group.
at::Tensor differences(const TensorGroups& groups, const at::Tensor& center) {
  const at::Tensor is_filler = at::arange(groups.values.size(1), groups.sizes.options()).ge(groups.sizes);
  return groups.values.sub(center).masked_fill(is_filler, 0);
}

/// The root, rounded to nearest. LibTorch's own for float32 may be off by the last bit; that for float64 is
/// near enough, since no root of a float32 number lies close to the middle of two.
at::Tensor root(const at::Tensor& x) { return x.to(at::kDouble).sqrt().to(at::kFloat); }

}  // namespace

float largest_magnitude_of(std::span<const float> x) {
  kernels::Line line;
  kernels::largest_magnitudes(x, x.size(), {&line, 1});
  return line.scale;
}

at::Tensor largest_magnitudes(const TensorGroups& groups) {
  return groups.values.abs().amax(1, /*keepdim=*/true);
}

float mean_of(std::span<const float> x) { return kernels::sum(x) / static_cast<float>(x.size()) + 0.0F; }

at::Tensor means(const TensorGroups& groups) { return ordered_sum(groups.values).div(groups.sizes).add(0); }

float norm_about(std::span<const float> x, float center) {
  const float largest = largest_magnitude_of(x);
  if (largest == 0 || !std::isfinite(largest)) return largest;
  const float power = std::ldexp(1.0F, std::max(std::ilogb(largest), kLeastExponent));
  return std::sqrt(kernels::sum_of_squared_deviations(x, center, 1 / power)) * power;
}

at::Tensor norms_about(const TensorGroups& groups, const at::Tensor& center) {
  const at::Tensor largest = largest_magnitudes(groups);
  const at::Tensor exponent = largest.view(at::kInt).bitwise_right_shift(23).clamp_min(1);
  const at::Tensor power = exponent.bitwise_left_shift(23).view(at::kFloat);
  const at::Tensor scaled = differences(groups, center).mul(power.reciprocal());
  const at::Tensor norm = root(ordered_sum(scaled.mul(scaled))).mul(power);
  return at::where(largest.isfinite().logical_and(largest.ne(0)), norm, largest);
}

float mean_deviation_of(std::span<const float> x, float center) {
  return kernels::sum_of_deviations(x, center) / static_cast<float>(x.size());
}

at::Tensor mean_deviations(const TensorGroups& groups, const at::Tensor& center) {
  return ordered_sum(differences(groups, center).abs()).div(groups.sizes);
}

float deviation_of(std::span<const float> x, float center) {
  return norm_about(x, center) / std::sqrt(static_cast<float>(x.size()));
}

at::Tensor deviations(const TensorGroups& groups, const at::Tensor& center) {
  return norms_about(groups, center).div(root(groups.sizes.to(at::kFloat)));
}

}  // namespace strait
