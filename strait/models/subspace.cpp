#include "strait/models/subspace.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <span>

#include "strait/base/error.h"
#include "strait/base/random.h"
#include "strait/kernels/lowrank.h"

namespace strait {
namespace {

// Tags of the draws.
constexpr uint64_t kBasis = 0x6261736973;      // "basis"
constexpr uint64_t kEmbedding = 0x656d626564;  // "embed"

std::span<float> numbers_of(const at::Tensor& x) {
  return {x.data_ptr<float>(), static_cast<size_t>(x.numel())};
}

/// Uniform in [-limit, limit): of 24 random bits, by one rounded product.
at::Tensor uniform(uint64_t key, int64_t rows, int64_t columns, float limit) {
  constexpr int64_t kGrain = 1 << 16;
  at::Tensor drawn = at::empty({rows, columns}, at::kFloat);
  const auto numbers = numbers_of(drawn);
  const CounterRandom random(key);
  at::parallel_for(0, drawn.numel(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto draw = static_cast<float>(random.word(static_cast<uint64_t>(i)) >> 40);
      numbers[static_cast<size_t>(i)] = (draw * 0x1p-23F - 1) * limit;
    }
  });
  return drawn;
}

}  // namespace

void SubspaceTables::make(int64_t seed, const at::TensorOptions& numbers) {
  const auto type = numbers.dtype() == at::kDouble ? at::kDouble : at::kFloat;
  if (seed < 0) throw InputError("subspace.seed: expected 0 or more, found {}", seed);
  if (seed == seed_ && basis_.device() == numbers.device() && basis_.scalar_type() == type) return;
  STRAIT_CHECK(rank_ > 0 && rank_ < width_, "a subspace of rank {} in {} dimensions", rank_, width_);
  const auto key = static_cast<uint64_t>(seed);
  const at::Tensor vectors = uniform(make_key(kBasis, key), rank_, width_, 1);
  kernels::orthonormalise(static_cast<size_t>(width_), numbers_of(vectors));
  const auto limit =
      static_cast<float>(deviation_ * std::sqrt(3.0));  // whose uniform numbers have the deviation
  basis_ = vectors.t().contiguous().to(numbers.device(), type);
  embedding_ = uniform(make_key(kEmbedding, key), vocab_, width_, limit).to(numbers.device(), type);
  seed_ = seed;
}

at::Tensor Subspace::stream(const at::Tensor& z, const at::Tensor& tokens) const {
  tables_->make(seed_.item().to<int64_t>(), z.options());
  return at::linear(z, tables_->basis()) + at::embedding(tables_->embedding(), tokens);
}

}  // namespace strait
