#include "strait/models/dropout.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <thread>

#include "strait/base/rng_scope.h"

namespace strait {
namespace {

at::Tensor drop(const at::Tensor& x, const RngKey& key, double probability = 0.3, uint64_t place = 4) {
  const RngScope scope(key);
  return dropout(x, probability, place);
}

TEST(Dropout, KeepsTheMeanAndTheShare) {
  const at::Tensor dropped = drop(torch::ones({50, 2001}), {.seed = 1});
  EXPECT_NEAR(dropped.eq(0).to(at::kDouble).mean().item<double>(), 0.3, 0.005);
  EXPECT_NEAR(dropped.mean().item<double>(), 1.0, 0.01);
  EXPECT_TRUE(at::allclose(dropped.max(), at::full({}, 1 / 0.7F)));
  EXPECT_TRUE(at::equal(drop(torch::ones({3, 4}), {}, 0), torch::ones({3, 4})));
}

TEST(Dropout, DependsOnTheRowOfTheBatchAndNotOnTheMicroBatch) {
  const at::Tensor x = torch::ones({12, 7, 5});
  const at::Tensor whole = drop(x, {.seed = 3, .step = 8});
  for (const int64_t first : {0, 5, 11}) {
    const at::Tensor part = x.narrow(0, first, 12 - first);
    EXPECT_TRUE(at::equal(drop(part, {.seed = 3, .step = 8, .first_row = static_cast<size_t>(first)}),
                          whole.narrow(0, first, 12 - first)));
  }
}

TEST(Dropout, DiffersWithSeedStepPlaceAndRow) {
  const at::Tensor x = torch::ones({4, 100});
  const at::Tensor base = drop(x, {.seed = 3, .step = 8});
  EXPECT_FALSE(at::equal(drop(x, {.seed = 4, .step = 8}), base));
  EXPECT_FALSE(at::equal(drop(x, {.seed = 3, .step = 9}), base));
  EXPECT_FALSE(at::equal(drop(x, {.seed = 3, .step = 8}, 0.3, 5), base));
  EXPECT_FALSE(at::equal(base[0], base[1]));
}

TEST(Dropout, APartOfAMaskIsThatPartOfTheWhole) {
  const DropoutRng draws{{.seed = 2, .step = 1, .first_row = 3}, 0.4, 6};
  const at::Tensor whole = drop(torch::ones({2, 31}), draws.key, draws.probability, draws.place);
  for (const int64_t begin : {0, 1, 6, 7, 30}) {
    for (int64_t size = 0; begin + size <= 31; ++size) {
      std::vector<float> factors(static_cast<size_t>(size));
      draws.fill(1, begin, factors);
      EXPECT_TRUE(at::equal(torch::tensor(factors), whole[1].narrow(0, begin, size))) << begin << " " << size;
    }
  }
}

TEST(Dropout, TensorOperationsMakeTheSameMask) {
  const DropoutRng draws{{.seed = 9, .step = 3, .first_row = 5}, 0.25, 2};
  const at::Tensor index = torch::tensor({0, 1, 2, 3, 10, 1000001, 7}, at::kLong).view({7, 1});
  const at::Tensor factors = draws.factors_at(4, index);
  ASSERT_EQ(factors.sizes(), (std::vector<int64_t>{4, 7, 1}));
  for (int64_t row = 0; row < 4; ++row) {
    for (int64_t i = 0; i < 7; ++i) {
      float expected = 0;
      draws.fill(row, index[i].item<int64_t>(), {&expected, 1});
      EXPECT_EQ(factors[row][i].item<float>(), expected) << row << " " << i;
    }
  }
  const at::Tensor many = draws.factors_at(2, torch::arange(2001));
  std::vector<float> expected(2001);
  draws.fill(1, 0, expected);
  EXPECT_TRUE(at::equal(many[1], torch::tensor(expected)));
}

TEST(Dropout, TheGradientGoesWhereTheValueWent) {
  const at::Tensor x = torch::ones({4, 10}).requires_grad_();
  const at::Tensor y = drop(x, {.seed = 1});
  y.sum().backward();
  EXPECT_TRUE(at::equal(x.grad(), y.detach()));
}

TEST(RngScope, IsOfItsThreadAndEndsWithIt) {
  const RngScope outer({.seed = 1});
  {
    const RngScope inner({.seed = 2});
    EXPECT_EQ(current_rng_key().seed, 2U);
    std::thread([] { EXPECT_EQ(current_rng_key().seed, 0U); }).join();
  }
  EXPECT_EQ(current_rng_key().seed, 1U);
}

}  // namespace
}  // namespace strait
