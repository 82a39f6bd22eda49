// Links between ranks that break off and come back.

#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strait/base/random.h"
#include "tests/support/variable.h"
#include "tests/transport/link_cutter.h"
#include "tests/transport/meetings.h"

namespace strait {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::IsEmpty;
using testing::MatchesRegex;

/// Two ranks, of which the second reaches the first over a link that can be cut, with as many connections as
/// the parameter says.
class CutLink : public testing::TestWithParam<int> {
 protected:
  std::unique_ptr<Group> join(int rank, std::chrono::milliseconds timeout) const {
    Membership member;
    member.rank = rank;
    member.size = 2;
    member.master_address = "127.0.0.1";
    member.master_port = rank == 0 ? port_ : link_.port();
    return join_group(
        {Carrier::tcp, GetParam()}, member, timeout, "", [](const auto&) {}, [](const auto&) {});
  }

  std::vector<std::string> run(const std::function<void(Group& group)>& work,
                               std::chrono::milliseconds timeout = 30s) {
    return test::run_in_threads(2, [&](int rank) { test::run_as_rank(*join(rank, timeout), work); });
  }

  /// Both ranks send this many frames to each other, of sizes that their numbers decide, and check what comes.
  static void exchange(Group& group, uint32_t frames) {
    const auto transport = group.make_transport({1 - group.rank()}, {"cut"});
    const auto size_of = [](uint32_t i) { return CounterRandom(i).below(i % 8 == 0 ? 400'000 : 4'000); };
    const auto direction = [&](bool mine) {
      return (group.rank() == 0) == mine ? Direction::activation : Direction::gradient;
    };
    for (uint32_t i = 0; i < frames; ++i) {
      transport->send({0, direction(true), i}, test::frame_of(size_of(i), static_cast<uint8_t>(i), i));
      const Buffer got = transport->receive({0, direction(false), i}, 500'000);
      const Frame frame = parse_frame(got.bytes());
      if (frame.header.micro_batch != i || frame.payload.size() != size_of(i))
        throw Error("frame {} is lost", i);
      for (const std::byte byte : frame.payload) {
        if (static_cast<uint8_t>(byte) != static_cast<uint8_t>(i)) throw Error("frame {} is damaged", i);
      }
    }
    transport->drain();
  }

  /// Does this to the link now and then until it goes.
  class Meanwhile {
   public:
    explicit Meanwhile(std::function<void()> work)
        : thread_([this, work = std::move(work)] {
            while (!stopped_) work();
          }) {}
    ~Meanwhile() {
      stopped_ = true;
      thread_.join();
    }
    Meanwhile(const Meanwhile&) = delete;
    Meanwhile& operator=(const Meanwhile&) = delete;

   private:
    std::atomic<bool> stopped_ = false;
    std::thread thread_;
  };

  const test::Variable secret_{"STRAIT_SECRET", "a secret of this test"};
  const uint16_t port_ = free_port();
  test::LinkCutter link_{port_};
};

INSTANTIATE_TEST_SUITE_P(Of, CutLink, testing::Values(1, 4),
                         [](const auto& of) { return of.param == 1 ? "OneConnection" : "FourConnections"; });

TEST_P(CutLink, LosesNothingWhenItBreaksOffAgainAndAgain) {
  std::atomic<bool> joined = false;
  std::vector<std::string> errors;
  {
    CounterRandom random(1);
    const Meanwhile cutting([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5 + random.below(40)));
      if (joined) link_.cut(std::chrono::milliseconds(random.below(30)));
    });
    errors = run([&](Group& group) {
      joined = true;
      exchange(group, 1000);
      joined = false;
    });
  }
  EXPECT_THAT(errors, Each(IsEmpty()));
  EXPECT_GT(link_.connections(), 5);
}

TEST_P(CutLink, WaitsForItWhileItIsDown) {
  const auto errors = run([&](Group& group) {
    exchange(group, 10);
    if (group.rank() == 0) link_.cut(3s);
    exchange(group, 10);
    std::chrono::duration<double> without{};
    const auto links = group.links();
    for (const Outage& outage : links.front().outages) without += outage.end - outage.begin;
    EXPECT_GE(without, 2s) << "rank " << group.rank();
    EXPECT_LE(without, 30s) << "rank " << group.rank();
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
  EXPECT_GE(link_.connections(), 2);
}

TEST_P(CutLink, AWordOfFailureComesBehindALongMessageOverASlowLink) {
  link_.throttle(1e6);
  const auto errors = run([&](Group& group) {
    const auto transport = group.make_transport({1 - group.rank()}, {"cut"});
    const Tag tag(0, Direction::gradient, 0);
    if (group.rank() == 1) {
      transport->send(tag, test::frame_of(6'000'000, 1, 0));
      std::this_thread::sleep_for(500ms);  // it is under way
      throw NumericError("the loss is infinite");
    }
    transport->receive(tag, 7'000'000);
    transport->receive(tag, 7'000'000);
  });
  EXPECT_THAT(errors[0], testing::HasSubstr("the loss is infinite"));
}

TEST_P(CutLink, ConnectsAnewWhenNothingComesForSeconds) {
  const auto errors = run([&](Group& group) {
    exchange(group, 10);
    if (group.rank() == 0) link_.freeze(8s);
    exchange(group, 10);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
  EXPECT_GE(link_.connections(), 2);
}

TEST_P(CutLink, HasAllItsConnections) {
  const auto errors = run([&](Group& group) {
    exchange(group, 10);
    const auto end = std::chrono::steady_clock::now() + 10s;
    int connections = 0;
    while (connections < GetParam() && std::chrono::steady_clock::now() < end) {
      connections = group.links().front().connections;
      std::this_thread::sleep_for(10ms);
    }
    EXPECT_EQ(connections, GetParam()) << "rank " << group.rank();
    group.gather("");
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_P(CutLink, LosesNothingOfOneThatLeavesWhileItIsDown) {
  const auto errors = test::run_in_threads(2, [&](int rank) {
    const auto group = join(rank, 30s);
    group->gather("");
    at::Tensor last = at::zeros({3});
    if (rank == 0) {
      link_.cut(2s);
      group->send(at::ones({3}), 1, "the last");
    } else {
      group->receive(last, 0, "the last");
      EXPECT_TRUE(at::equal(last, at::ones({3})));
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
  EXPECT_GE(link_.connections(), 2);
}

TEST_P(CutLink, GivesUpWhenItStaysDown) {
  const auto errors = run(
      [&](Group& group) {
        exchange(group, 10);
        if (group.rank() == 0) link_.freeze(1h);
        exchange(group, 10);
      },
      2s);
  link_.freeze(0s);
  // What was on its way when the link froze may still have come; rank 1 may have waited for the word that its
  // last frame before had come.
  EXPECT_THAT(errors[0],
              MatchesRegex("rank 0, boundary cut, gradient, micro-batch [0-9]: rank 1 was silent.*"));
  EXPECT_THAT(errors[1], MatchesRegex("rank 1, boundary cut(, activation, micro-batch [0-9])?: .*"));
}

}  // namespace
}  // namespace strait
