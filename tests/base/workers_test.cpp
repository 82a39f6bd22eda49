#include "strait/base/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <numeric>

#include "strait/base/error.h"

namespace strait {
namespace {

using std::chrono::milliseconds;

/// A task that begins and then waits until it is let go.
class Gate {
 public:
  Workers::Task task() {
    return [this] {
      begun_.set_value();
      open_.get_future().wait();
    };
  }
  void await() { begun_.get_future().wait(); }
  void open() { open_.set_value(); }

 private:
  std::promise<void> begun_;
  std::promise<void> open_;
};

void expect_failure(const std::function<void()>& call) {
  try {
    call();
    FAIL() << "no error";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "task 2 failed");
  }
}

TEST(Workers, EachDoesItsTasksInTheirOrder) {
  std::vector<int> order;
  Workers workers(1);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(workers.post(0, [&order, i] { order.push_back(i); }), static_cast<size_t>(i) + 1);
  }
  workers.wait();
  std::vector<int> expected(1000);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

TEST(Workers, OneIsNotHeldUpByAnother) {
  Gate gate;
  int done = 0;
  Workers workers(2);
  workers.post(0, gate.task());
  const size_t tasks = workers.post(1, [&] { done = 1; });
  workers.wait_for(1, tasks);
  EXPECT_EQ(done, 1);
  gate.open();
  workers.wait();
}

TEST(Workers, WaitingForSomeTasksIsNotWaitingForAll) {
  Gate gate;
  int done = 0;
  Workers workers(1);
  const size_t first = workers.post(0, [&] { done = 1; });
  workers.post(0, gate.task());
  workers.wait_for(0, first);
  EXPECT_EQ(done, 1);
  gate.open();
  workers.wait();
}

TEST(Workers, WhatATaskHoldsIsFreeOnceItIsDone) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = held;
  Workers workers(1);
  for (int i = 0; i < 100; ++i) {
    if (!held) held = std::make_shared<int>(1);
    const std::weak_ptr<int> one = held;
    workers.wait_for(0, workers.post(0, [held = std::exchange(held, nullptr)] {}));
    EXPECT_TRUE(one.expired());
  }
  EXPECT_TRUE(watched.expired());
}

/// What was done before a failure counts; what comes behind it is dropped, in every thread.
TEST(Workers, AFailureEndsTheWorkOfAll) {
  std::atomic<int> done = 0;
  Gate gate;
  Workers workers(2);
  const size_t before = workers.post(0, [&] { done += 1; });
  workers.post(1, gate.task());
  gate.await();
  const size_t other = workers.post(1, [&] { done += 100; });
  workers.post(0, [] { throw InputError("task {} failed", 2); });
  const size_t behind = workers.post(0, [&] { done += 10; });
  for (int again = 0; again < 2; ++again) {
    expect_failure([&] { workers.wait_for(0, behind); });
    expect_failure([&] { workers.wait_for(1, other); });
    expect_failure([&] { workers.wait(); });
    expect_failure([&] { workers.check(); });
  }
  EXPECT_NO_THROW(workers.wait_for(0, before));
  gate.open();
  const size_t late = workers.post(1, [&] { done += 1000; });
  expect_failure([&] { workers.wait_for(1, late); });
  EXPECT_EQ(done, 1);
}

TEST(Workers, AnErrorThatNobodyAsksForIsDropped) {
  Workers workers(1);
  workers.post(0, [] { throw InputError("unheard"); });
}

TEST(Workers, TheEndWaitsForTheTaskThatRunsAndDropsTheOthers) {
  std::atomic<int> done = 0;
  const auto held = std::make_shared<int>(1);
  {
    Gate gate;
    Workers workers(1);
    workers.post(0, [&, task = gate.task()] {
      task();
      std::this_thread::sleep_for(milliseconds(20));
      done += 1;
    });
    for (int i = 0; i < 10; ++i) workers.post(0, [&, held] { done += 100; });
    gate.await();
    gate.open();
  }
  EXPECT_EQ(done, 1);
  EXPECT_EQ(held.use_count(), 1);
}

TEST(Workers, StoppedOnesNeitherWorkNorLetAnybodyWait) {
  Gate gate;
  const auto held = std::make_shared<int>(1);
  Workers workers(1);
  workers.post(0, gate.task());
  const size_t dropped = workers.post(0, [held] {});
  gate.await();
  workers.stop();
  EXPECT_EQ(held.use_count(), 1) << "dropped at once";
  EXPECT_THROW(workers.wait_for(0, dropped), Error);
  EXPECT_THROW(workers.wait(), Error);
  EXPECT_NO_THROW(workers.check());
  workers.post(0, [held] {});
  EXPECT_EQ(held.use_count(), 1);
  gate.open();
}

TEST(Workers, WhatIsBegunCanBeWaitedForAfterAStop) {
  std::atomic<bool> begun = false;
  std::atomic<bool> done = false;
  Workers workers(2);
  workers.post(1, [&] {
    begun = true;
    std::this_thread::sleep_for(milliseconds(50));
    done = true;
  });
  while (!begun) std::this_thread::yield();
  workers.stop();
  workers.wait_for_begun();
  EXPECT_TRUE(done);
}

TEST(Workers, SomebodyWhoWaitsHearsOfAStop) {
  Gate gate;
  Workers workers(1);
  const size_t task = workers.post(0, gate.task());
  gate.await();
  std::thread other([&] { workers.stop(); });
  EXPECT_THROW(workers.wait_for(0, task), Error);
  other.join();
  gate.open();
}

}  // namespace
}  // namespace strait
