#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "strait/base/named_tensors.h"
#include "strait/models/model.h"

namespace strait::test {

using State = NamedTensors;

inline State copy_of(const Model& model) {
  State state;
  for (const auto& [name, value] : model.state()) state.emplace_back(name, value.clone());
  return state;
}

inline void expect_equal(const State& a, const State& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i].second, b[i].second)) << a[i].first;
}

inline void expect_close(const State& a, const State& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(at::allclose(a[i].second, b[i].second, 1e-4, 1e-6)) << a[i].first;
}

}  // namespace strait::test
