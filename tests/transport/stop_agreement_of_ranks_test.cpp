// Ranks as threads, which pass a number on in a row at every step: so no rank ends a step without the first.

#include "strait/transport/stop_agreement.h"

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "strait/base/clock.h"
#include "strait/transport/group_part.h"
#include "tests/transport/ranks.h"

namespace strait {
namespace {

using namespace std::chrono_literals;
using test::Ranks;
using testing::AllOf;
using testing::Each;
using testing::EndsWith;
using testing::Ge;
using testing::IsEmpty;
using testing::StartsWith;

constexpr int kRanks = 4;
constexpr uint64_t kForever = 1'000'000;

void pass_on(Group& group) {
  at::Tensor number = at::zeros({1}, at::kLong);
  if (group.rank() > 0) group.receive(number, group.rank() - 1, "a number");
  if (group.rank() + 1 < group.size()) group.send(number, group.rank() + 1, "a number");
}

using Wants = std::function<bool(int rank, uint64_t step)>;

/// Steps until all stop, at most `steps`, each counted from 1; how many there were.
uint64_t run_steps(Group& group, uint64_t steps, const Wants& wants) {
  StopAgreement stop(group);
  for (uint64_t step = 1; step <= steps; ++step) {
    stop.begin_step(wants(group.rank(), step));
    pass_on(group);
    if (stop.is_last_step()) return step;
  }
  return steps;
}

/// What run_steps() gives on each rank.
std::vector<uint64_t> steps_of_ranks(uint64_t steps, const Wants& wants) {
  std::vector<uint64_t> done(kRanks);
  const auto errors = Ranks(kRanks).run(
      [&](Group& group) { done[static_cast<size_t>(group.rank())] = run_steps(group, steps, wants); });
  EXPECT_THAT(errors, Each(IsEmpty()));
  return done;
}

TEST(StopAgreement, NobodyStopsWhereNobodyAsks) {
  EXPECT_THAT(steps_of_ranks(50, [](int, uint64_t) { return false; }), Each(50U));
}

TEST(StopAgreement, TheFirstRankStopsAllAfterTheStepThatItBegins) {
  for (const uint64_t when : {1U, 7U}) {
    const auto done =
        steps_of_ranks(kForever, [&](int rank, uint64_t step) { return rank == 0 && step == when; });
    EXPECT_THAT(done, Each(when));
  }
}

TEST(StopAgreement, AnyOtherStopsAllAfterTheSameStep) {
  for (const int asking : {1, kRanks - 1}) {
    const auto done =
        steps_of_ranks(kForever, [&](int rank, uint64_t step) { return rank == asking && step == 3; });
    EXPECT_THAT(done, Each(AllOf(Ge(3U), done.front()))) << asking;
  }
}

TEST(StopAgreement, SeveralAtOnceStopAllOnce) {
  const auto all = steps_of_ranks(kForever, [](int, uint64_t step) { return step >= 4; });
  EXPECT_THAT(all, Each(4U)) << "the first is one of them";
  const auto others = steps_of_ranks(kForever, [](int rank, uint64_t step) { return rank > 0 && step >= 4; });
  EXPECT_THAT(others, Each(AllOf(Ge(4U), others.front())));
}

TEST(StopAgreement, ALoopIsNotStoppedByWhatIsLeftOfAnother) {
  const auto errors = Ranks(kRanks).run([](Group& group) {
    for (int loop = 0; loop < 5; ++loop) {
      // Asked at the last step, which may be too late for the first rank to take part.
      EXPECT_EQ(run_steps(group, 3, [](int rank, uint64_t step) { return rank == 2 && step == 3; }), 3U);
      EXPECT_EQ(run_steps(group, 20, [](int, uint64_t) { return false; }), 20U) << loop;
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(StopAgreement, APipelineOfAGroupHasItsOwn) {
  std::vector<uint64_t> done(kRanks);
  const auto errors = Ranks(kRanks).run([&](Group& group) {
    const std::shared_ptr<Group> whole(&group, [](Group*) {});
    const auto part = pipeline_of(whole, {group.rank(), kRanks, 2});
    const bool second = group.rank() >= 2;
    done[static_cast<size_t>(group.rank())] =
        run_steps(*part, 20, [&](int rank, uint64_t step) { return second && rank == 0 && step == 5; });
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
  EXPECT_THAT(done, testing::ElementsAre(20U, 20U, 5U, 5U));
}

/// What the ranks hear when the first one stops all at the second step, and the last one does this instead of
/// hearing of it.
std::vector<std::string> without_the_last(std::chrono::milliseconds timeout,
                                          const std::function<void()>& work) {
  std::promise<void> is_deaf;
  const std::shared_future<void> deaf = is_deaf.get_future();
  const Stopwatch watch;
  auto errors = Ranks(kRanks, timeout).run([&](Group& group) {
    auto stop = std::make_unique<StopAgreement>(group);
    stop->begin_step(false);
    pass_on(group);
    if (group.rank() + 1 == kRanks) {
      stop.reset();
      is_deaf.set_value();
      return work();
    }
    deaf.wait();
    stop->begin_step(group.rank() == 0);
    pass_on(group);
  });
  EXPECT_LT(watch.seconds() * 1e3, static_cast<double>(timeout.count()) * 1.5);
  return errors;
}

TEST(StopAgreement, ARankThatDiesBeforeItHasHeardIsNamed) {
  const auto errors = without_the_last(20s, [] { throw Error("no space left"); });
  EXPECT_THAT(errors[0], StartsWith("rank 0, stop request: "));
  for (const int rank : {0, 1, 2}) {
    EXPECT_THAT(errors[static_cast<size_t>(rank)], EndsWith("the first to fail was rank 3: no space left"));
  }
  EXPECT_EQ(errors[3], "no space left");
}

TEST(StopAgreement, ARankThatDoesNotAnswerIsNamedWithinTheTimeout) {
  const auto errors = without_the_last(1500ms, [] { std::this_thread::sleep_for(1500ms); });
  const std::string reason = "rank 0, stop request: rank 3 is gone: no answer for 0.5 s";
  EXPECT_EQ(errors[0], reason);
  EXPECT_THAT(errors[1], EndsWith("the first to fail was " + reason));
  EXPECT_THAT(errors[2], EndsWith(reason));
}

}  // namespace
}  // namespace strait
