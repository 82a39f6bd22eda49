#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace strait::bench {

/// Normal numbers of mean 0.2 and deviation 1.
inline std::vector<float> normal_numbers(uint64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.2F, 1);
  std::vector<float> x(count);
  std::generate(x.begin(), x.end(), [&] { return normal(random); });
  return x;
}

/// Normal numbers, those behind a ReLU, many of equal magnitude, subnormal numbers, and one number throughout.
inline std::vector<std::vector<float>> kinds_of_tensors(uint64_t count) {
  std::vector<std::vector<float>> tensors(4, normal_numbers(count, 1));
  for (float& value : tensors[1]) value = std::max(value, 0.0F);
  for (float& value : tensors[2]) value = std::round(2 * value) / 2;
  for (float& value : tensors[3]) value *= 1e-41F;
  tensors.emplace_back(count, -1.25F);
  return tensors;
}

}  // namespace strait::bench
