#include "strait/models/dropout.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/where.h>

#include <bit>
#include <cmath>
#include <vector>

#include "strait/base/error.h"
#include "strait/base/random.h"

namespace strait {
namespace {

constexpr uint64_t kLow = 0xffffffffU;

/// Draws below it go.
uint64_t threshold_of(double probability) {
  constexpr double kDraws = 0x1p32;
  return static_cast<uint64_t>(std::llround(probability * kDraws));
}

/// The factor of an element that stays.
float factor_of(double probability) { return static_cast<float>(1 / (1 - probability)); }

/// The upper bits of 64-bit words.
at::Tensor shifted(const at::Tensor& words, int64_t by) {
  return words.bitwise_right_shift(by).bitwise_and((int64_t{1} << (64 - by)) - 1);
}

/// CounterRandom's words at these positions, for keys that broadcast with them. Its arithmetic is modulo 2^64,
/// as that of int64 tensors.
at::Tensor words_at(const at::Tensor& keys, const at::Tensor& positions) {
  const auto factor = [](uint64_t bits) { return std::bit_cast<int64_t>(bits); };
  at::Tensor x = positions.add(1).mul(factor(0x9e3779b97f4a7c15ULL)).add(keys);
  x = x.bitwise_xor(shifted(x, 30)).mul(factor(0xbf58476d1ce4e5b9ULL));
  x = x.bitwise_xor(shifted(x, 27)).mul(factor(0x94d049bb133111ebULL));
  return x.bitwise_xor(shifted(x, 31));
}

}  // namespace

uint64_t DropoutRng::key_of(int64_t row) const {
  return make_key(key.seed, key.step, place, key.first_row + static_cast<size_t>(row));
}

// A word of the generator serves two elements.
void DropoutRng::fill(int64_t row, int64_t begin, std::span<float> factors) const {
  const CounterRandom random(key_of(row));
  const uint64_t threshold = threshold_of(probability);
  const float kept = factor_of(probability);
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

at::Tensor DropoutRng::factors_at(int64_t rows, const at::Tensor& index) const {
  std::vector<int64_t> shape(static_cast<size_t>(index.dim()) + 1, 1);
  shape[0] = rows;
  const at::Tensor keys = at::empty(shape, at::kLong);
  for (int64_t row = 0; row < rows; ++row) {
    keys.data_ptr<int64_t>()[row] = std::bit_cast<int64_t>(key_of(row));
  }
  const at::Tensor words = words_at(keys.to(index.device()), index.bitwise_right_shift(1));
  const at::Tensor draws =
      at::where(index.bitwise_and(1).eq(1), shifted(words, 32), words.bitwise_and(static_cast<int64_t>(kLow)));
  const auto threshold = static_cast<int64_t>(threshold_of(probability));
  return draws.ge(threshold).to(at::kFloat).mul(factor_of(probability));
}

at::Tensor dropout(const at::Tensor& x, double probability, uint64_t place) {
  STRAIT_CHECK(probability >= 0 && probability < 1, "dropout with probability {}", probability);
  if (probability == 0) return x;
  const DropoutRng draws{current_rng_key(), probability, place};
  const int64_t rows = x.size(0);
  if (!x.is_cpu()) {
    const at::Tensor index = at::arange(rows == 0 ? 0 : x.numel() / rows, x.options().dtype(at::kLong));
    return x * draws.factors_at(rows, index).view(x.sizes()).to(x.scalar_type());
  }
  const at::Tensor mask = at::empty(x.sizes(), at::kFloat);
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
