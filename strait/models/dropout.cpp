#include "strait/models/dropout.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "strait/base/draws.h"
#include "strait/base/error.h"
#include "strait/base/random.h"

namespace strait {
namespace {

constexpr double kWords = 0x1p32;  // a draw has 32 bits

/// Fills a sample's part of the mask; a word of the generator serves two elements.
void fill_row(CounterRandom random, uint64_t threshold, float kept, float* mask, int64_t size) {
  for (int64_t i = 0; i < size; i += 2) {
    const uint64_t word = random.next();
    mask[i] = (word & 0xffffffffU) < threshold ? 0.0F : kept;
    if (i + 1 < size) mask[i + 1] = (word >> 32) < threshold ? 0.0F : kept;
  }
}

}  // namespace

at::Tensor dropout(const at::Tensor& x, double probability, uint64_t place) {
  STRAIT_CHECK(probability >= 0 && probability < 1, "dropout with probability {}", probability);
  if (probability == 0) return x;
  const DrawKey& key = current_draws();
  const at::Tensor mask = at::empty(x.sizes(), at::kFloat);
  const int64_t rows = x.size(0);
  const int64_t size = rows == 0 ? 0 : x.numel() / rows;
  const auto threshold = static_cast<uint64_t>(std::llround(probability * kWords));
  const auto kept = static_cast<float>(1 / (1 - probability));
  at::parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const CounterRandom random(make_key(key.seed, key.step, place, key.first_row + static_cast<size_t>(row)));
      fill_row(random, threshold, kept, mask.data_ptr<float>() + row * size, size);
    }
  });
  return x * mask.to(x.options());
}

}  // namespace strait
