// A group over a process group that is there already: what it shares with its user, and failures that cannot
// close the connections.

#include "strait/transport/process_group.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strait/transport/stop_agreement.h"
#include "tests/transport/gloo/process_group_ranks.h"

namespace strait {
namespace {

using namespace std::chrono_literals;
using test::ProcessGroupRanks;
using test::UsersProcessGroup;
using testing::Each;
using testing::IsEmpty;

constexpr auto kNobodyComesNear = 60s;

void users_send(const UsersProcessGroup& users, const at::Tensor& tensor, int to) {
  std::vector<at::Tensor> tensors = {tensor};
  users.group->send(tensors, to, 0)->wait();
}

at::Tensor users_receive(const UsersProcessGroup& users, int from) {
  std::vector<at::Tensor> tensors = {at::zeros({3}, at::kLong)};
  users.group->recv(tensors, from, 0)->wait();
  return tensors.front();
}

int64_t users_sum(const UsersProcessGroup& users, int64_t mine) {
  std::vector<at::Tensor> tensors = {at::full({1}, mine, at::kLong)};
  users.group->allreduce(tensors)->wait();
  return tensors.front().item<int64_t>();
}

Buffer sealed_frame(uint32_t micro_batch) {
  Buffer frame(kFrameHeaderSize);
  frame.resize(kFrameHeaderSize);
  seal_frame(frame.bytes(), {.micro_batch = micro_batch});
  return frame;
}

// Between two of our messages, of which one is already awaited, the user sends one with tag 0 and sums up.
TEST(ProcessGroup, ItsUsersMessagesAndOursDoNotMix) {
  const auto errors = ProcessGroupRanks(2).run_over([](const UsersProcessGroup& users) {
    const auto group = group_over(users.group, users.store);
    const auto transport = group->make_transport({1 - group->rank()}, {"cut"});
    const Tag first(0, Direction::activation, 0);
    const at::Tensor numbers = at::arange(3, at::kLong);
    if (group->rank() == 0) {
      users_send(users, numbers, 1);
      transport->send(first, sealed_frame(7));
    } else {
      transport->expect(first, kFrameHeaderSize);
      EXPECT_TRUE(at::equal(users_receive(users, 0), numbers));
    }
    EXPECT_EQ(users_sum(users, group->rank() + 1), 3);
    EXPECT_EQ(group->gather("text").size(), 2U);
    if (group->rank() == 1) {
      EXPECT_EQ(parse_frame(transport->receive(first, kFrameHeaderSize).bytes()).header.micro_batch, 7U);
    }
    transport->drain();
    EXPECT_EQ(users_sum(users, 5), 10);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(ProcessGroup, GroupsFollowOneAnother) {
  const auto errors = ProcessGroupRanks(3).run_over([](const UsersProcessGroup& users) {
    for (uint64_t round = 1; round <= 3; ++round) {
      const auto group = group_over(users.group, users.store);
      StopAgreement stop(*group);
      uint64_t steps = 0;
      while (!stop.is_last_step() && steps < 10) {
        steps += 1;
        stop.begin_step(group->rank() == 0 && steps == round);
        group->gather("");
      }
      EXPECT_EQ(steps, round) << "what an earlier group said is not heard";
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(ProcessGroup, ARankThatDiffersIsNamed) {
  const auto errors = ProcessGroupRanks(3).run_over([](const UsersProcessGroup& users) {
    const std::string seed = users.group->getRank() == 1 ? "8" : "7";
    group_over(users.group, users.store, {.settings = {{"seed", seed}}});
  });
  EXPECT_EQ(errors[0], "rank 0: rank 1 has seed = 8, this one 7; all must be the same");
  EXPECT_EQ(errors[1], "rank 1: rank 0 has seed = 7, this one 8; all must be the same");
  EXPECT_EQ(errors[2], "rank 2: rank 1 has seed = 8, this one 7; all must be the same");
}

// The first rank serves the store, which ends with it. Nobody waits for it but through others.
TEST(ProcessGroup, AWordIsHeardThroughRanksThatDoNotFail) {
  const auto errors = ProcessGroupRanks(4, 60s).run([](Group& group) {
    if (group.rank() == 0) throw Error("no space left");
    at::Tensor number = at::zeros({1}, at::kLong);
    group.receive(number, group.rank() % 3 + 1, "a number");
  });
  EXPECT_EQ(errors[0], "no space left");
  EXPECT_EQ(errors[1], "rank 1, a number: rank 2 is gone; the first to fail was rank 0: no space left");
  EXPECT_EQ(errors[2], "rank 2, a number: rank 3 is gone; the first to fail was rank 0: no space left");
  EXPECT_EQ(errors[3], "rank 3, a number: rank 1 is gone; the first to fail was rank 0: no space left");
}

// The last one closes its connections, as the end of a process does, and only the rank before it notices.
TEST(ProcessGroup, ARankThatVanishesEndsTheOthers) {
  const auto errors = ProcessGroupRanks(3).run_over([](const UsersProcessGroup& users) {
    const auto group = group_over(users.group, users.store, {.timeout = kNobodyComesNear});
    const int rank = group->rank();
    const auto transport = group->make_transport({rank == 0 ? 1 : 0, rank == 2 ? 1 : 2}, {"a", "b"});
    if (rank == 2) return;
    try {
      transport->receive({rank == 0 ? 0U : 1U, Direction::gradient, 0}, 1000);
    } catch (const Error& error) {
      group->fail({.rank = rank, .diverged = false, .reason = error.what()});
      throw;
    }
  });
  EXPECT_EQ(errors[2], "");
  const std::string first = "rank 1, boundary b, gradient, micro-batch 0: rank 2 is gone: connection closed";
  EXPECT_EQ(errors[1], first);
  EXPECT_EQ(errors[0],
            "rank 0, boundary a, gradient, micro-batch 0: rank 1 is gone; the first to fail was " + first);
}

}  // namespace
}  // namespace strait
