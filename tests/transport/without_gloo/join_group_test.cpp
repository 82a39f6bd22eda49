#include "strait/transport/join_group.h"

#include <gtest/gtest.h>

namespace strait {
namespace {

TEST(JoinGroup, IsRefused) {
  EXPECT_THROW(join_group(
                   {}, std::chrono::seconds(1), "", [](const auto&) {}, [](const auto&) {}),
               InputError);
  EXPECT_THROW(require_groups(), InputError);
}

}  // namespace
}  // namespace strait
