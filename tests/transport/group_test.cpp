#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <latch>
#include <thread>

#include "strait/base/random.h"
#include "strait/transport/group_part.h"
#include "tests/transport/meetings.h"

namespace strait {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using test::frame_of;
using test::Meeting;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

/// What a group promises, whatever it is made of.
class GroupOver : public testing::TestWithParam<Meeting> {
 protected:
  /// Ranks that meet in that way.
  struct Met {
    int count;
    milliseconds timeout;
    std::vector<std::string> run(const std::function<void(Group& group)>& work) const {
      return GetParam().run(count, timeout, work);
    }
  };
  static Met ranks(int count, milliseconds timeout = 20s) { return {count, timeout}; }
};

INSTANTIATE_TEST_SUITE_P(Of, GroupOver, testing::ValuesIn(test::meetings()),
                         [](const auto& info) { return info.param.name; });

TEST_P(GroupOver, GathersTextsOfAnyLengthFromEveryRank) {
  const auto errors = ranks(4).run([](Group& group) {
    const auto text_of = [](int rank) { return std::string(static_cast<size_t>(rank) * 1000, 'a' + rank); };
    for (int round = 0; round < 3; ++round) {
      const auto all = group.gather(text_of(group.rank()));
      for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(all[static_cast<size_t>(rank)], text_of(rank));
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_P(GroupOver, SendsTensorsOfAnyType) {
  const auto errors = ranks(2).run([](Group& group) {
    const at::Tensor tensor = at::arange(100000, at::kLong).view({100, 1000});
    if (group.rank() == 1) return group.send(tensor, 0, "numbers");
    at::Tensor got = at::zeros_like(tensor);
    group.receive(got, 1, "numbers");
    EXPECT_TRUE(at::equal(got, tensor));
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(TcpGroup, SendsATensorThatIsLongerThanAMessage) {
  constexpr int64_t kLong = (int64_t{64} << 20) + 17;
  const auto errors = test::Ranks(2).run([](Group& group) {
    for (const int64_t size : {kLong, int64_t{0}, int64_t{1}}) {
      const at::Tensor tensor = at::arange(size, at::kLong).to(at::kByte);
      if (group.rank() == 1) {
        group.send(tensor, 0, "numbers");
        continue;
      }
      at::Tensor got = at::zeros_like(tensor);
      group.receive(got, 1, "numbers");
      EXPECT_TRUE(at::equal(got, tensor)) << size;
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(TcpGroup, AFrameThatIsTooLongIsNamedByItsSender) {
  const auto errors = test::Ranks(2).run([](Group& group) {
    const auto transport = group.make_transport({1 - group.rank()}, {"cut"});
    const Tag tag(0, Direction::activation, 3);
    if (group.rank() == 1) transport->receive(tag, 100);
    Buffer frame((size_t{4} << 30) + 1);
    frame.resize(frame.capacity());
    transport->send(tag, std::move(frame));
    transport->drain();
  });
  EXPECT_EQ(errors[0],
            "rank 0, boundary cut, activation, micro-batch 3: a message of 4294967297 bytes, expected at most "
            "4294967296");
  EXPECT_THAT(errors[1], HasSubstr(errors[0]));
}

/// The sum over all ranks of what each has, as every rank gets it.
template <class Number, class Met>
std::vector<std::vector<Number>> sums_of(const Met& ranks, const std::vector<std::vector<Number>>& parts) {
  std::vector<std::vector<Number>> sums(parts.size());
  const auto errors = ranks.run([&](Group& group) {
    at::Tensor tensor = at::tensor(parts[static_cast<size_t>(group.rank())]);
    group.all_reduce(tensor, "numbers");
    const auto* begin = tensor.data_ptr<Number>();
    sums[static_cast<size_t>(group.rank())] = {begin, begin + tensor.numel()};
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
  return sums;
}

TEST_P(GroupOver, AllReduceAddsInTheOrderOfRanks) {
  // In float 1e8 + 1 is 1e8, so that the order counts.
  EXPECT_THAT(sums_of<float>(ranks(4), {{1e8F, 1}, {1, 2}, {-1e8F, 3}, {1, 4}}),
              Each(testing::ElementsAre(1.0F, 10.0F)));
  EXPECT_THAT(sums_of<double>(ranks(4), {{1e16}, {1}, {-1e16}, {0.25}}), Each(testing::ElementsAre(0.25)));
  EXPECT_THAT(sums_of<int64_t>(ranks(2), {{1LL << 60}, {3}}), Each(testing::ElementsAre((1LL << 60) + 3)));
}

TEST_P(GroupOver, AllReduceOfAPipelineIsItsOwn) {
  const auto errors = ranks(4).run([](Group& group) {
    const std::shared_ptr<Group> whole(&group, [](Group*) {});
    const auto part = pipeline_of(whole, {group.rank(), 4, 2});
    at::Tensor number = at::full({1}, 1 << group.rank(), at::kLong);
    part->all_reduce(number, "a number");
    EXPECT_EQ(number.item<int64_t>(), group.rank() < 2 ? 3 : 12);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_P(GroupOver, AMessageIsDeliveredWhenEveryHandlerHasReturned) {
  std::atomic<int> handled = 0;
  const auto errors = ranks(3).run([&](Group& group) {
    std::vector<uint64_t> numbers;
    auto channel = group.make_control(group.rank() == 0 ? std::vector<int>{1, 2} : std::vector<int>{0},
                                      "numbers", [&](const ControlMessage& message) {
                                        numbers.push_back(message.number);
                                        std::this_thread::sleep_for(20ms);
                                        ++handled;
                                      });
    if (group.rank() == 0) {
      channel->post({ControlKind::last_step, 1});
      for (uint64_t i = 2; i <= 3; ++i) {
        channel->deliver({ControlKind::last_step, i});
        EXPECT_EQ(handled, static_cast<int>(2 * i));
      }
    }
    group.gather("");
    channel.reset();  // and its thread
    if (group.rank() > 0) {
      EXPECT_THAT(numbers, testing::ElementsAre(1, 2, 3));
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_P(GroupOver, WhatOneRankCannotDoNoneDoes) {
  const auto errors = ranks(3).run([](Group& group) {
    run_collectively(group, [&] {
      if (group.rank() == 1) throw InputError("weights.safetensors: cannot be read");
    });
  });
  EXPECT_EQ(errors[1], "weights.safetensors: cannot be read");
  EXPECT_EQ(errors[0], "rank 1 gave up: weights.safetensors: cannot be read");
  EXPECT_EQ(errors[2], errors[0]);
}

TEST(FailureOf, IsThatOfTheRankWhichGaveUp) {
  const Failure other = failure_of(RankGaveUp(2, "weights.safetensors: cannot be read", false), 1);
  EXPECT_EQ(other.rank, 2);
  EXPECT_EQ(other.reason, "weights.safetensors: cannot be read");
  EXPECT_FALSE(other.diverged);
  const Failure own = failure_of(InternalError("broken\nand where"), 1);
  EXPECT_EQ(own.rank, 1);
  EXPECT_EQ(own.reason, "broken");
  EXPECT_FALSE(own.diverged);
  EXPECT_TRUE(failure_of(NumericError("not finite"), 1).diverged);
}

TEST_P(GroupOver, InTurnTheyDoNotMeet) {
  std::atomic<int> inside = 0;
  std::string order;
  const auto errors = ranks(4).run([&](Group& group) {
    in_turn(group, [&] {
      EXPECT_EQ(++inside, 1);
      order += static_cast<char>('0' + group.rank());
      --inside;
    });
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
  EXPECT_EQ(order, "0123");
}

TEST_P(GroupOver, CarriesFramesOfEverySizeInTheOrderOfTheirTag) {
  constexpr size_t kBound = kFrameHeaderSize + 3'000'000;
  const auto errors = ranks(2).run([](Group& group) {
    const auto transport = group.make_transport({1 - group.rank()}, {"cut"});
    CounterRandom random(3);
    std::vector<size_t> sizes;
    for (int i = 0; i < 40; ++i) sizes.push_back(random.below(i % 4 == 0 ? 3'000'000 : 500));
    const Tag tag(0, Direction::activation, 2);
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (group.rank() == 0) {
        transport->send(tag, frame_of(sizes[i], static_cast<uint8_t>(i), 2));
      } else {
        if (i % 3 == 0) transport->expect(tag, kBound);
        const Buffer got = transport->receive(tag, kBound);
        const Frame frame = parse_frame(got.bytes());
        ASSERT_EQ(frame.payload.size(), sizes[i]);
        if (sizes[i] > 0) {
          EXPECT_EQ(static_cast<size_t>(frame.payload.back()), i);
        }
      }
    }
    transport->drain();
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_P(GroupOver, TakesBothDirectionsAtOnce) {
  const auto errors = ranks(2).run([](Group& group) {
    const auto transport = group.make_transport({1 - group.rank()}, {"cut"});
    const auto direction = [&](bool mine) {
      return (group.rank() == 0) == mine ? Direction::activation : Direction::gradient;
    };
    constexpr uint32_t kMessages = 30;
    std::thread sender([&] {
      for (uint32_t i = 0; i < kMessages; ++i)
        transport->send({0, direction(true), i}, frame_of(200'000, 1, i));
    });
    for (uint32_t i = 0; i < kMessages; ++i) {
      EXPECT_EQ(parse_frame(transport->receive({0, direction(false), i}, 300'000).bytes()).header.micro_batch,
                i);
    }
    sender.join();
    transport->drain();
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_P(GroupOver, WhatIsNoFrameIsAWireError) {
  const auto errors = ranks(2).run([](Group& group) {
    const auto transport = group.make_transport({1 - group.rank()}, {"cut"});
    const Tag tag(0, Direction::gradient, 0);
    if (group.rank() == 0) {
      Buffer noise(100);
      noise.resize(100);
      std::memset(noise.data(), 7, 100);
      return transport->send(tag, std::move(noise));
    }
    EXPECT_THROW(transport->receive(tag, 200), WireError);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_P(GroupOver, ASilentPeerIsNamedWithinTheTimeout) {
  const auto errors = ranks(2, 1s).run([](Group& group) {
    const auto transport = group.make_transport({1 - group.rank()}, {"layer2"});
    if (group.rank() == 1) transport->receive({0, Direction::activation, 3}, 1000);
    std::this_thread::sleep_for(1500ms);
  });
  EXPECT_EQ(errors[1],
            "rank 1, boundary layer2, activation, micro-batch 3: rank 0 was silent for the timeout of 1 s");
}

TEST_P(GroupOver, APeerThatFailsSaysWhy) {
  std::latch made(3);  // whoever is still making his hears of the failure there
  const auto errors = ranks(3).run([&](Group& group) {
    // In a row: 0, 1, 2. The last one breaks and the first hears of it through the one between.
    const int rank = group.rank();
    const auto transport = group.make_transport({rank == 0 ? 1 : 0, rank == 2 ? 1 : 2}, {"a", "b"});
    made.arrive_and_wait();
    if (rank == 2) throw Error("no space left");
    transport->receive({rank == 0 ? 0U : 1U, Direction::gradient, 0}, 1000);
  });
  EXPECT_EQ(errors[2], "no space left");
  EXPECT_EQ(errors[1],
            "rank 1, boundary b, gradient, micro-batch 0: rank 2 is gone; the first to fail was rank 2: no "
            "space left");
  EXPECT_EQ(errors[0],
            "rank 0, boundary a, gradient, micro-batch 0: rank 1 is gone; the first to fail was rank 2: no "
            "space left");
}

TEST_P(GroupOver, DivergenceIsPassedOnAsDivergence) {
  std::vector<bool> diverged(2);
  const auto errors = ranks(2).run([&](Group& group) {
    if (group.rank() == 1) throw NumericError("the loss is not finite at step 3");
    try {
      group.gather("");
    } catch (const NumericError& error) {
      diverged[0] = true;
      throw;
    }
  });
  EXPECT_TRUE(diverged[0]);
  EXPECT_EQ(errors[0], "rank 1: the loss is not finite at step 3");
}

}  // namespace
}  // namespace strait
