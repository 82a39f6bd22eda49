// Ranks that wait for others which wait themselves: for one whose link is slow, for one that hangs, for each
// other.

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "strait/transport/tcp/mailroom.h"
#include "tests/support/variable.h"
#include "tests/transport/link_cutter.h"
#include "tests/transport/ranks.h"

namespace strait {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

/// Four ranks, of which the second reaches the first over a link of its own.
class ChainOfWaits : public testing::Test {
 protected:
  static constexpr auto kLimit = 6s;  // so that a wait ends after 4 s of silence

  std::vector<std::string> run(const std::function<void(Group& group)>& work) {
    return test::run_in_threads(4, [&](int rank) {
      Membership member;
      member.rank = rank;
      member.size = 4;
      member.master_address = "127.0.0.1";
      member.master_port = rank == 1 ? link_.port() : port_;
      const auto group = join_group(
          Carrier::tcp, member, kLimit, "", [](const auto&) {}, [](const auto&) {});
      test::run_as_rank(*group, work);
    });
  }

  static void receive(Group& group, int64_t bytes, int from) {
    at::Tensor tensor = at::zeros({bytes}, at::kByte);
    group.receive(tensor, from, "a tensor");
  }

  const test::Variable secret_{"STRAIT_SECRET", "a secret of this test"};
  const uint16_t port_ = free_port();
  test::LinkCutter link_{port_};
};

TEST_F(ChainOfWaits, NobodyIsSilentWhoWaitsForOneWithASlowLink) {
  constexpr int64_t kLong = 9'000'000;
  constexpr int kMany = 20;  // more than there is room for
  const auto errors = run([&](Group& group) {
    const auto send = [&](int64_t bytes, int to) { group.send(at::zeros({bytes}, at::kByte), to, "a tensor"); };
    if (group.rank() == 0) {
      link_.throttle(1e6);
      receive(group, kLong, 1);
      link_.throttle(0);
      for (int i = 0; i < kMany; ++i) receive(group, 100, 2);
    } else if (group.rank() == 1) {
      send(kLong, 0);  // and behind it waits for the first rank, which has not got it yet
    } else if (group.rank() == 2) {
      for (int i = 0; i < kMany; ++i) send(100, 0);
      send(100, 3);
    } else {
      receive(group, 100, 2);
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_F(ChainOfWaits, OneThatHangsIsNamedInTimeByWhoWaitsForIt) {
  std::chrono::steady_clock::duration lasted{};
  const auto errors = run([&](Group& group) {
    const auto begin = std::chrono::steady_clock::now();
    if (group.rank() == 1) return std::this_thread::sleep_for(kLimit + 2s);
    std::this_thread::sleep_for(group.rank() * 300ms);  // so that the first rank has waited longest
    try {
      receive(group, 100, group.rank() == 0 ? 1 : group.rank() == 2 ? 0 : 2);
    } catch (const Error&) {
      if (group.rank() == 3) lasted = std::chrono::steady_clock::now() - begin;
      throw;
    }
  });
  EXPECT_EQ(errors[0], "rank 0, a tensor: rank 1 was silent for the timeout of 6 s");
  for (const size_t rank : {2U, 3U}) EXPECT_THAT(errors[rank], HasSubstr("rank 1 was silent"));
  EXPECT_LT(lasted, kLimit);
}

TEST_F(ChainOfWaits, ThoseWhoWaitForEachOtherInARingAreSilent) {
  const auto begin = std::chrono::steady_clock::now();
  const auto errors = run([&](Group& group) { receive(group, 100, (group.rank() + 1) % 4); });
  EXPECT_THAT(errors, Each(HasSubstr("was silent")));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2 * kLimit);
}

/// Does the work now and then, in another thread, and the last at the end.
void now_and_then(int times, const std::function<void()>& work, const std::function<void()>& last,
                  const std::function<void()>& meanwhile) {
  std::jthread other([&] {
    for (int i = 0; i < times; ++i) {
      std::this_thread::sleep_for(100ms);
      work();
    }
    last();
  });
  meanwhile();
}

TEST(MailroomWaits, AFarewellLastsWhileThePeerTakesInWhatItIsSent) {
  tcp::Mailroom mailroom(0, 2, 30s);
  const auto wait = [&](std::chrono::milliseconds most) {
    const auto begin = std::chrono::steady_clock::now();
    mailroom.wait_until_confirmed(1, {.begin = begin, .patience = 200ms, .most = most});
    return std::chrono::steady_clock::now() - begin;
  };
  EXPECT_LT(wait(20s), 10s) << "nothing was sent";
  mailroom.note_sent(1);
  const auto silent = wait(20s);
  EXPECT_GE(silent, 200ms);
  EXPECT_LT(silent, 10s) << "the peer takes in nothing";

  now_and_then(
      8, [&] { mailroom.note_confirmed(1, 0); }, [&] { mailroom.note_confirmed(1, 1); },
      [&] {
        const auto limited = wait(300ms);
        EXPECT_GE(limited, 300ms);
        const auto heard = wait(20s);
        EXPECT_GE(limited + heard, 750ms) << "until all is confirmed";
        EXPECT_LT(heard, 10s);
      });
}

TEST(MailroomWaits, AnAnswerIsWaitedForWhileTheRankIsHeard) {
  tcp::Mailroom mailroom(0, 2, 30s);
  const tcp::Channel channel{.kind = tcp::Kind::confirmation};
  const auto answer = [&] {
    return mailroom.receive_for(300ms, std::chrono::steady_clock::now(), 1, channel, "here").has_value();
  };
  EXPECT_FALSE(answer());
  now_and_then(
      8, [&] { mailroom.touch(1); }, [&] { mailroom.put(1, channel, Buffer()); },
      [&] { EXPECT_TRUE(answer()); });
}

TEST(MailroomWaits, AreToldToOthersThanTheOneWaitedFor) {
  tcp::Mailroom mailroom(0, 3, 30s);
  const tcp::Channel channel{.kind = tcp::Kind::tensor};
  EXPECT_EQ(mailroom.alive_at(2), std::nullopt);
  const auto begin = std::chrono::steady_clock::now();
  std::thread waiting([&] { mailroom.receive(1, channel, "here", 1); });
  while (!mailroom.alive_at(2)) std::this_thread::yield();
  EXPECT_GE(*mailroom.alive_at(2), begin);
  EXPECT_EQ(mailroom.alive_at(1), std::nullopt) << "two would keep each other waiting";
  const auto later = begin + 10s;
  mailroom.note_alive(1, later);
  EXPECT_EQ(mailroom.alive_at(2), later);
  mailroom.note_alive(1, begin);
  EXPECT_EQ(mailroom.alive_at(2), later) << "what was heard stays heard";
  mailroom.put(1, channel, Buffer());
  waiting.join();
  EXPECT_EQ(mailroom.alive_at(2), std::nullopt);
}

}  // namespace
}  // namespace strait
