#include "strait/kernels/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "strait/kernels/dispatch.h"

namespace strait::kernels {
namespace {

/// The suites run once for each instruction set, which this variable names.
TEST(Target, IsTheOneThatTheVariableNames) {
  const auto names = kernel_targets();
  const char* variable = std::getenv("STRAIT_KERNELS");
  const std::string wanted = variable == nullptr ? "" : variable;
  const std::string name = wanted.empty() ? names.front() : wanted == "SCALAR" ? names.back() : wanted;
  EXPECT_THAT(names, testing::Contains(name));
  EXPECT_EQ(hwy::TargetName(chosen_target()), name);
}

}  // namespace
}  // namespace strait::kernels
