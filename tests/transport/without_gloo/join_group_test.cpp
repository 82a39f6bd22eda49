#include "strait/transport/join_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/transport/ranks.h"

namespace strait {
namespace {

TEST(JoinGroup, C10dIsRefusedWithoutGloosHeaders) {
  EXPECT_THAT(
      test::Ranks(2, std::chrono::seconds(1), Carrier::c10d).run([](Group&) {}),
      testing::Each(testing::HasSubstr("pipeline.transport: \"c10d\" needs a LibTorch with Gloo's headers")));
}

}  // namespace
}  // namespace strait
