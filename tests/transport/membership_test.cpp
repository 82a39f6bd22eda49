#include "strait/transport/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "strait/base/error.h"
#include "tests/support/errors.h"

namespace strait {
namespace {

using Variables = std::map<std::string, std::string>;
using testing::HasSubstr;

std::optional<Membership> read(const Variables& variables) {
  return membership_of([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string complaint(const Variables& variables) {
  return test::error_of<InputError>([&] { read(variables); });
}

TEST(Membership, ThereIsNoneWithoutALauncher) {
  EXPECT_FALSE(read({}));
  EXPECT_FALSE(read({{"MASTER_ADDR", "10.0.0.1"}, {"PATH", "/bin"}}));
  // A batch script of a job, which is no task of a step.
  EXPECT_FALSE(read({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "0"}}));
}

TEST(Membership, ReadsTorchrunsVariables) {
  const auto member = read({{"RANK", "3"},
                            {"WORLD_SIZE", "4"},
                            {"LOCAL_RANK", "1"},
                            {"LOCAL_WORLD_SIZE", "2"},
                            {"MASTER_ADDR", "10.0.0.1"},
                            {"MASTER_PORT", "29400"},
                            {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                            {"TORCHELASTIC_RUN_ID", "job"},
                            {"TORCHELASTIC_RESTART_COUNT", "2"},
                            {"SLURM_PROCID", "0"},
                            {"SLURM_STEP_NUM_TASKS", "1"}});
  ASSERT_TRUE(member);
  EXPECT_EQ(member->rank, 3);
  EXPECT_EQ(member->size, 4);
  EXPECT_EQ(member->local_rank, 1);
  EXPECT_EQ(member->local_size, 2);
  EXPECT_EQ(member->master_address, "10.0.0.1");
  EXPECT_EQ(member->master_port, 29400);
  EXPECT_EQ(member->store_host, StoreHost::torchrun);
  EXPECT_FALSE(member->serves_store());
  EXPECT_EQ(member->attempt, "job/2");
}

TEST(Membership, ReadsWhatLaunchSets) {
  const Variables variables = {{"RANK", "0"},
                               {"WORLD_SIZE", "2"},
                               {"MASTER_ADDR", "127.0.0.1"},
                               {"STRAIT_ATTEMPT", "0123"},
                               {"TORCHELASTIC_USE_AGENT_STORE", "False"},
                               {"TORCHELASTIC_RUN_ID", "job"}};
  const auto member = read(variables);
  ASSERT_TRUE(member);
  EXPECT_EQ(member->store_host, StoreHost::first_rank);
  EXPECT_EQ(member->attempt, "0123");
  Variables long_name = variables;
  long_name["STRAIT_ATTEMPT"] = std::string(257, 'a');
  EXPECT_EQ(complaint(long_name), "STRAIT_ATTEMPT: expected at most 256 characters, found 257");
}

TEST(Membership, ReadsOpenMpisVariables) {
  const auto member = read({{"OMPI_COMM_WORLD_RANK", "1"},
                            {"OMPI_COMM_WORLD_SIZE", "2"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  ASSERT_TRUE(member);
  EXPECT_EQ(member->rank, 1);
  EXPECT_EQ(member->master_address, "127.0.0.1");  // all are on this machine
  EXPECT_EQ(member->master_port, 29500);
  EXPECT_EQ(member->store_host, StoreHost::first_rank);
  EXPECT_FALSE(member->serves_store());  // rank 0 does
  EXPECT_EQ(member->attempt, "");
}

TEST(Membership, ReadsThoseOfASlurmStep) {
  const auto member = read({{"SLURM_PROCID", "5"},
                            {"SLURM_STEP_NUM_TASKS", "8"},
                            {"SLURM_LOCALID", "1"},
                            {"SLURM_STEP_TASKS_PER_NODE", "2(x4)"},
                            {"SLURM_LAUNCH_NODE_IPADDR", "10.1.0.7"}});
  ASSERT_TRUE(member);
  EXPECT_EQ(member->rank, 5);
  EXPECT_EQ(member->local_size, 2);
  EXPECT_EQ(member->master_address, "10.1.0.7");
}

TEST(Membership, SaysWhichVariableIsWrong) {
  EXPECT_THAT(complaint({{"RANK", "0"}}), HasSubstr("WORLD_SIZE: expected a number from 1"));
  EXPECT_THAT(complaint({{"RANK", "4"}, {"WORLD_SIZE", "4"}}), HasSubstr("RANK"));
  EXPECT_THAT(complaint({{"RANK", "x"}, {"WORLD_SIZE", "4"}}), HasSubstr("RANK"));
  EXPECT_THAT(complaint({{"RANK", "0"}, {"WORLD_SIZE", "4"}}), HasSubstr("MASTER_ADDR: expected the address"));
  EXPECT_THAT(complaint({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "99999"}}),
              HasSubstr("MASTER_PORT"));
}

}  // namespace
}  // namespace strait
