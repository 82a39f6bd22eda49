#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/kernels/numbers.h"

namespace strait::cuda_check {

/// Normal numbers, those behind a ReLU, many of equal magnitude, subnormal numbers, one number throughout, and
/// normal numbers in their order, of which neighbours are alike.
inline std::vector<std::vector<float>> kinds_of_tensors(uint64_t count) {
  std::vector<std::vector<float>> tensors(4, kernels::numbers(count, 1));
  for (float& value : tensors[1]) value = std::max(value, 0.0F);
  for (float& value : tensors[2]) value = std::round(2 * value) / 2;
  for (float& value : tensors[3]) value *= 1e-41F;
  tensors.emplace_back(count, -1.25F);
  tensors.push_back(tensors[0]);
  std::ranges::sort(tensors.back());
  return tensors;
}

}  // namespace strait::cuda_check
