#pragma once

#include <cmath>
#include <cstddef>
#include <random>
#include <span>
#include <vector>

namespace strait::kernels {

/// Normal numbers of mean 0.2 and deviation 1, which depend on the seed alone.
inline std::vector<float> numbers(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.2F, 1);
  std::vector<float> x(count);
  for (float& value : x) value = normal(random);
  return x;
}

/// The entropy of the magnitudes' shares of their sum in bits.
inline double entropy_of(std::span<const float> x) {
  double total = 0;
  for (const float value : x) total += std::abs(value);
  double entropy = 0;
  for (const float value : x) {
    const double p = std::abs(value) / total;
    if (p > 0) entropy -= p * std::log2(p);
  }
  return entropy;
}

/// Around the edges of blocks and vectors.
inline const std::vector<size_t> kSizes = {1,   2,   15,   16,   17,   127,  128,  129,
                                           255, 256, 1000, 1024, 4096, 5001, 65537};

}  // namespace strait::kernels
