#include "strait/codecs/error_statistics.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/codecs/inputs.h"

namespace strait {
namespace {

at::Tensor norm_of(const at::Tensor& x) { return x.to(at::kDouble).norm(); }

TEST(ErrorStatistics, AreTheFormulasOverAllMessages) {
  const at::Tensor x = normal_tensor({6, 35}, 1);
  const at::Tensor y = normal_tensor({6, 35}, 2);
  ErrorStatistics all(x.narrow(0, 0, 2), y.narrow(0, 0, 2));
  all += ErrorStatistics(x.narrow(0, 2, 4), y.narrow(0, 2, 4));
  const at::Tensor error = x.to(at::kDouble).sub(y);
  EXPECT_NEAR(all.relative_error(), norm_of(error).div(norm_of(x)).item<double>(), 1e-12);
  EXPECT_EQ(all.max_abs_error(), error.abs().max().item<double>());
}

TEST(ErrorStatistics, TakeTensorsOfAnyLayout) {
  const at::Tensor x = normal_tensor({8, 5}, 3);
  const at::Tensor y = normal_tensor({5, 8}, 4);
  EXPECT_EQ(ErrorStatistics(x.t(), y).relative_error(),
            ErrorStatistics(x.t().contiguous(), y).relative_error());
}

TEST(ErrorStatistics, ZerosHaveNoErrorOrAnInfiniteOne) {
  const at::Tensor zeros = at::zeros({3});
  EXPECT_EQ(ErrorStatistics().relative_error(), 0);
  EXPECT_EQ(ErrorStatistics(zeros, zeros).relative_error(), 0);
  EXPECT_TRUE(std::isinf(ErrorStatistics(zeros, zeros.add(1)).relative_error()));
}

}  // namespace
}  // namespace strait
