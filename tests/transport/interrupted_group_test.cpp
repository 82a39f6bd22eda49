// A thread of a rank that lets it fail while it and its peer wait.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "tests/transport/meetings.h"

namespace strait {
namespace {

using namespace std::chrono_literals;
using testing::EndsWith;

// Without the look for words, each of these would wait for a minute and then say that a rank was silent.
class Interrupted : public testing::TestWithParam<test::Meeting> {
 protected:
  /// What two ranks hear when a thread of the first one lets it fail while both wait.
  static std::vector<std::string> errors(const std::function<void(Group& group)>& wait) {
    return GetParam().run(2, 60s, [&](Group& group) {
      std::promise<void> waits;
      std::thread interrupting;
      if (group.rank() == 0) {
        interrupting = std::thread([&] {
          waits.get_future().wait();
          std::this_thread::sleep_for(50ms);
          group.fail({.rank = 0, .diverged = false, .reason = "interrupted"});
        });
      }
      waits.set_value();
      std::string reason;
      try {
        wait(group);
      } catch (const Error& error) {
        reason = error.what();
      }
      if (interrupting.joinable()) interrupting.join();
      if (!reason.empty()) throw Error("{}", reason);
    });
  }
};

INSTANTIATE_TEST_SUITE_P(Of, Interrupted, testing::ValuesIn(test::meetings()),
                         [](const auto& info) { return info.param.name; });

TEST_P(Interrupted, AReceiveEnds) {
  const auto heard = errors([](Group& group) {
    at::Tensor number = at::zeros({1}, at::kLong);
    group.receive(number, 1 - group.rank(), "a number");
  });
  EXPECT_EQ(heard[0], "rank 0, a number: this rank has given up");
  EXPECT_EQ(heard[1], "rank 1, a number: rank 0 is gone; the first to fail was rank 0: interrupted");
}

TEST_P(Interrupted, ASendEnds) {
  const auto heard = errors([](Group& group) {
    at::Tensor number = at::zeros({1}, at::kLong);
    if (group.rank() == 0) return group.send(number, 1, "a number");
    group.make_transport({0}, {"cut"})->receive({0, Direction::activation, 0}, 1000);
  });
  EXPECT_THAT(heard[0], EndsWith("this rank has given up"));
  EXPECT_THAT(heard[1], EndsWith("the first to fail was rank 0: interrupted"));
}

TEST_P(Interrupted, AnExchangeEnds) {
  const auto heard = errors([](Group& group) {
    at::Tensor number = at::zeros({1}, at::kLong);
    if (group.rank() == 0) group.gather("mine");
    group.receive(number, 0, "a number");
  });
  EXPECT_EQ(heard[0], "rank 0, exchange between the ranks: this rank has given up");
  EXPECT_THAT(heard[1], EndsWith("the first to fail was rank 0: interrupted"));
}

TEST_P(Interrupted, WhatIsUnderWayEnds) {
  const auto heard = errors([](Group& group) {
    const auto transport = group.make_transport({1 - group.rank()}, {"cut"});
    if (group.rank() == 1) transport->receive({0, Direction::activation, 1}, 1000);
    transport->send({0, Direction::activation, 0}, test::frame_of(0, 0, 0));
    transport->drain();
  });
  EXPECT_THAT(heard[0], EndsWith("this rank has given up"));
  EXPECT_THAT(heard[1], EndsWith("the first to fail was rank 0: interrupted"));
}

TEST_P(Interrupted, NothingIsWaitedForAfterwards) {
  std::string later;
  errors([&](Group& group) {
    at::Tensor number = at::zeros({1}, at::kLong);
    if (group.rank() == 1) return group.receive(number, 0, "a number");
    EXPECT_THROW(group.receive(number, 1, "a number"), Error);
    try {
      group.receive(number, 1, "another number");
    } catch (const Error& error) {
      later = error.what();
    }
  });
  EXPECT_EQ(later, "rank 0, another number: this rank has given up");
}

}  // namespace
}  // namespace strait
