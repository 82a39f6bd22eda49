#pragma once

#include <gtest/gtest.h>

#include "tests/support/run_files.h"
#include "tests/support/temp_dir.h"

namespace strait::test {

/// Two runs that computed the same: the same bytes of weights, and metrics that differ in times alone.
inline void expect_equal_runs(const std::filesystem::path& a, const std::filesystem::path& b) {
  EXPECT_TRUE(read_file(a / "model.safetensors") == read_file(b / "model.safetensors"))
      << "the weights of " << a << " and " << b;
  EXPECT_EQ(metrics_without_times(a), metrics_without_times(b));
}

}  // namespace strait::test
