// Threads that look into a store, and what they share with those who wait.

#include "strait/transport/c10d/lookout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "strait/transport/c10d/control_keys.h"
#include "strait/transport/c10d/control_outbox.h"

namespace strait {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr auto kNever = std::chrono::milliseconds(1h);

TEST(Lookout, LooksAgainAfterThePauseOrWhenWoken) {
  std::atomic<int> looks = 0;
  Lookout lookout(
      [&looks]() -> std::optional<std::chrono::milliseconds> { return ++looks == 1 ? 1ms : kNever; });
  while (looks < 2) std::this_thread::sleep_for(1ms);
  lookout.wake();
  while (looks < 3) std::this_thread::sleep_for(1ms);
}

TEST(Lookout, StopsLookingWhenThereIsNoNextTime) {
  std::atomic<int> looks = 0;
  {
    Lookout lookout([&looks]() -> std::optional<std::chrono::milliseconds> {
      ++looks;
      return std::nullopt;
    });
    while (looks == 0) std::this_thread::sleep_for(1ms);
    lookout.wake();
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_EQ(looks, 1);
}

TEST(Lookout, LeavesAThreadBehindThatDoesNotComeBack) {
  const auto released = std::make_shared<std::promise<void>>();
  const auto ended = std::make_shared<std::promise<void>>();
  {
    const Lookout lookout([released, ended]() -> std::optional<std::chrono::milliseconds> {
      released->get_future().wait();
      ended->set_value();
      return std::nullopt;
    });
  }
  released->set_value();
  ended->get_future().wait();
}

TEST(ControlOutbox, TellsWhoHasNotConfirmed) {
  ControlOutbox outbox;
  outbox.put({1, 2}, {ControlKind::stop_request, 4}, false);
  EXPECT_FALSE(outbox.is_awaited());
  outbox.put({1, 2}, {ControlKind::last_step, 5}, true);
  EXPECT_TRUE(outbox.is_awaited());
  const auto letters = outbox.take();
  ASSERT_EQ(letters.size(), 4U);
  EXPECT_EQ(letters[1].to, 2);
  EXPECT_EQ(letters[1].message.number, 4U);
  EXPECT_TRUE(letters[3].confirmed);
  EXPECT_THAT(outbox.take(), IsEmpty());
  outbox.confirm(2);
  const auto missing = outbox.wait(1ms);
  EXPECT_THAT(missing.ranks, ElementsAre(1));
  EXPECT_EQ(missing.reason, "");
  EXPECT_FALSE(outbox.is_awaited()) << "the wait is over";
  outbox.put({3}, {ControlKind::last_step, 6}, true);
  std::thread other([&] { outbox.fail("a rank has failed"); });
  EXPECT_EQ(outbox.wait(kNever).reason, "a rank has failed");
  other.join();
}

TEST(ControlKeys, CarryMessagesInOrder) {
  FailureBoard board(c10::make_intrusive<c10d::HashStore>(), 0, 3, 1s);
  board.trust({"a", "b", "c"});
  const ControlKeys first(board, 0, 0);
  const ControlKeys second(board, 1, 0);
  const ControlKeys last(board, 2, 0);
  EXPECT_EQ(first.send(2, {ControlKind::last_step, 7}), 0);
  EXPECT_EQ(second.send(2, {ControlKind::stop_request, 8}), 1);
  EXPECT_FALSE(first.has(0)) << "it is not to this rank";
  EXPECT_FALSE(ControlKeys(board, 2, 1).has(0)) << "it is not of this channel";
  EXPECT_TRUE(last.has(1));
  EXPECT_FALSE(last.has(2));
  EXPECT_EQ(last.message(0)->kind, ControlKind::last_step);
  EXPECT_EQ(last.message(0)->number, 7U);
  EXPECT_EQ(last.message(1)->kind, ControlKind::stop_request);
  EXPECT_FALSE(first.is_confirmed(2, 0));
  last.confirm(0);
  EXPECT_TRUE(first.is_confirmed(2, 0));
  EXPECT_FALSE(second.is_confirmed(2, 1));
}

TEST(ControlKeys, AMessageWithoutItsSendersTokenIsNone) {
  FailureBoard board(c10::make_intrusive<c10d::HashStore>(), 0, 2, 1s);
  board.trust({"a", "b"});
  const ControlKeys keys(board, 0, 3);
  for (const std::string forged : {"a 1 2 7", "b 2 2 7", "b 1 2", "", "b -1 2 7"}) {
    board.store()->set("control/3/to/0/0", std::vector<uint8_t>(forged.begin(), forged.end()));
    EXPECT_FALSE(keys.message(0)) << forged;
  }
  const std::string genuine = "b 1 2 7";
  board.store()->set("control/3/to/0/0", std::vector<uint8_t>(genuine.begin(), genuine.end()));
  EXPECT_EQ(keys.message(0)->number, 7U);
}

}  // namespace
}  // namespace strait
