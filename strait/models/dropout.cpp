#include "strait/models/dropout.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>

#include <cmath>

#include "strait/base/error.h"
#include "strait/base/random.h"

namespace strait {
namespace {

constexpr double kWords = 0x1p32;  // a draw has 32 bits
constexpr uint64_t kLow = 0xffffffffU;

}  // namespace

// A word of the generator serves two elements.
void DropoutRng::fill(int64_t row, int64_t begin, std::span<float> factors) const {
  const CounterRandom random(make_key(key.seed, key.step, place, key.first_row + static_cast<size_t>(row)));
  const auto threshold = static_cast<uint64_t>(std::llround(probability * kWords));
  const auto kept = static_cast<float>(1 / (1 - probability));
  size_t i = 0;
  const auto put = [&](uint64_t draw) { factors[i++] = draw < threshold ? 0.0F : kept; };
  auto position = static_cast<uint64_t>(begin) / 2;
  if (begin % 2 == 1 && !factors.empty()) put(random.word(position++) >> 32);
  while (i + 1 < factors.size()) {
    const uint64_t word = random.word(position++);
    put(word & kLow);
    put(word >> 32);
  }
  if (i < factors.size()) put(random.word(position) & kLow);
}

at::Tensor dropout(const at::Tensor& x, double probability, uint64_t place) {
  STRAIT_CHECK(probability >= 0 && probability < 1, "dropout with probability {}", probability);
  if (probability == 0) return x;
  const DropoutRng draws{current_rng_key(), probability, place};
  const at::Tensor mask = at::empty(x.sizes(), at::kFloat);
  const int64_t rows = x.size(0);
  const auto size = rows == 0 ? 0 : static_cast<size_t>(x.numel() / rows);
  const std::span<float> factors(mask.data_ptr<float>(), static_cast<size_t>(mask.numel()));
  at::parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      draws.fill(row, 0, factors.subspan(static_cast<size_t>(row) * size, size));
    }
  });
  return x * mask.to(x.options());
}

}  // namespace strait
