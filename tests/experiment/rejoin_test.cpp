#include "strait/experiment/rejoin.h"

#include <gtest/gtest.h>

#include "strait/base/error.h"
#include "strait/config/config.h"
#include "strait/transport/port.h"

namespace strait {
namespace {

/// A process alone whose others are lost once: how it starts before and after.
std::vector<Start> starts_with(Start first, bool has_begun) {
  const Config config = parse_config("[model]\ncuts = []\n[pipeline]\nrejoin = \"10s\"\n", "test.toml");
  Membership alone{.master_address = "127.0.0.1", .master_port = free_port(), .attempt = "of a test"};
  std::vector<Start> starts;
  const auto train = [&](const std::shared_ptr<Group>& /*group*/, Start start,
                         const std::function<void()>& begun) {
    starts.push_back(start);
    if (starts.size() > 1) return RunOutcome{};
    if (has_begun) begun();
    throw PeerError("rank 1 is gone");
  };
  train_with_others(
      config, alone, "", first, [](const auto&...) {}, [](const std::string&) {}, train);
  return starts;
}

TEST(Rejoin, WhatHadBegunResumes) {
  EXPECT_EQ(starts_with(Start::replace, true), (std::vector{Start::replace, Start::resume}));
  EXPECT_EQ(starts_with(Start::fresh, true), (std::vector{Start::fresh, Start::resume}));
}

TEST(Rejoin, WhatHadNotBegunStartsAsItWas) {
  EXPECT_EQ(starts_with(Start::replace, false), (std::vector{Start::replace, Start::replace}));
  EXPECT_EQ(starts_with(Start::fresh, false), (std::vector{Start::fresh, Start::fresh}));
}

}  // namespace
}  // namespace strait
