#include "strait/transport/stop_agreement.h"

#include <gtest/gtest.h>

namespace strait {
namespace {

TEST(StopAgreement, OneProcessAgreesWithItself) {
  SingleProcessGroup group;
  StopAgreement stop(group);
  stop.begin_step(false);
  EXPECT_FALSE(stop.is_last_step());
  stop.begin_step(true);
  EXPECT_TRUE(stop.is_last_step());
  stop.begin_step(false);
  EXPECT_TRUE(stop.is_last_step()) << "a larger unit ends after the step in which it was asked";
}

}  // namespace
}  // namespace strait
