#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strait/base/error.h"
#include "strait/pipeline/plan.h"
#include "strait/pipeline/schedules.h"

namespace strait {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string parse_error(std::string_view text) {
  try {
    parse_plan(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(PlanText, ActionsReadAsInTheDocumentation) {
  EXPECT_EQ(to_text(Action{Op::forward, 0, 1}), "0F1");
  EXPECT_EQ(to_text(Action{Op::backward, 2, 0}), "2B0");
  EXPECT_EQ(to_text(Action{Op::send_activation, 0, 1}), "0SEND_F1");
  EXPECT_EQ(to_text(Action{Op::recv_activation, 1, 1}), "1RECV_F1");
  EXPECT_EQ(to_text(Action{Op::send_gradient, 12, 34}), "12SEND_B34");
  EXPECT_EQ(to_text(Action{Op::recv_gradient, 0, 0}), "0RECV_B0");
}

TEST(PlanText, BothEndsOfAMessageNameTheSameBoundary) {
  EXPECT_EQ(boundary_of({Op::send_activation, 3, 0}), 3);
  EXPECT_EQ(boundary_of({Op::recv_activation, 4, 0}), 3);
  EXPECT_EQ(boundary_of({Op::send_gradient, 4, 0}), 3);
  EXPECT_EQ(boundary_of({Op::recv_gradient, 3, 0}), 3);
  EXPECT_EQ(direction_of(Op::recv_activation), Direction::activation);
  EXPECT_EQ(direction_of(Op::send_gradient), Direction::gradient);
  EXPECT_THROW(boundary_of({Op::forward, 3, 0}), InternalError);
  EXPECT_THROW(direction_of(Op::backward), InternalError);
}

TEST(PlanText, RoundTripsEverySchedule) {
  for (int stages = 1; stages <= 8; ++stages) {
    for (int micro_batches = 1; micro_batches <= 8; ++micro_batches) {
      for (const Plan& plan : {gpipe(stages, micro_batches), one_f_one_b(stages, micro_batches),
                               forward_only(stages, micro_batches)}) {
        const Plan lowered = lower(plan);
        EXPECT_EQ(parse_plan(to_text(plan)), plan);
        EXPECT_EQ(parse_plan(to_text(lowered)), lowered);
        EXPECT_EQ(parse_plan(to_text(one_process(lowered))), one_process(lowered));
      }
    }
  }
}

TEST(PlanText, KeepsIdleRanksAndSharedOnes) {
  const Plan plan = parse_plan("0F0 2F0\n\n1F0\n");
  EXPECT_EQ(plan.rank_of_stage, (std::vector<int>{0, 2, 0}));
  EXPECT_EQ(plan.ranks.size(), 3U);
  EXPECT_TRUE(plan.ranks[1].empty());
  EXPECT_EQ(to_text(plan), "0F0 2F0\n\n1F0\n");
  EXPECT_EQ(parse_plan("0F0  2F0\n\n1F0"), plan) << "blanks between actions and the last line end are free";
}

TEST(PlanText, ErrorsNameLineAndToken) {
  for (const std::string bad :
       {"F0", "0F", "0", "F", "0G0", "0f0", "-1F0", "0F-1", "0F0x", "0SENDF0", "0F0,0F1", "0RECV_0", "65536F0",
        "0F1048576", "0F99999999999999999999", "\t", "0F0\r"}) {
    EXPECT_THAT(parse_error("0F0\n1F0 " + bad + " 1F1\n"), AllOf(HasSubstr("line 2"), HasSubstr(bad))) << bad;
  }
  EXPECT_THAT(parse_error("0F0\n1F0 0B0"),
              AllOf(HasSubstr("line 2"), HasSubstr("\"0B0\""), HasSubstr("line 1")));
  EXPECT_THAT(parse_error("0F0\n2F0"), HasSubstr("stage 1"));
  EXPECT_THAT(parse_error(""), HasSubstr("no action"));
  EXPECT_THAT(parse_error("\n \n"), HasSubstr("no action"));
}

}  // namespace
}  // namespace strait
