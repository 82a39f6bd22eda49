#include "strait/transport/emulated_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

#include "strait/base/units.h"
#include "tests/support/errors.h"
#include "tests/transport/meetings.h"

namespace strait {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using test::frame_of;
using test::message_of;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr Direction kForward = Direction::activation;

/// Where what was handed on lies, and when that was. It outlives the transport under test.
struct Arrivals {
  struct Arrival {
    uint32_t micro_batch;
    size_t size;
    steady_clock::time_point at;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Arrival> all;
  bool is_open = true;  ///< else who hands on waits, as for a receiver that is far behind
  std::string error;    ///< what a message that is handed on meets; empty: nothing
  std::atomic<bool> cancelled = false;

  std::vector<uint32_t> micro_batches() {
    const std::scoped_lock lock(mutex);
    std::vector<uint32_t> numbers;
    for (const auto& arrival : all) numbers.push_back(arrival.micro_batch);
    return numbers;
  }
  void open() {
    const std::scoped_lock lock(mutex);
    is_open = true;
    changed.notify_all();
  }
};

class Recorder : public Transport {
 public:
  explicit Recorder(Arrivals& arrivals) : arrivals_(arrivals) {}
  void send(Tag tag, Buffer message) override {
    std::unique_lock lock(arrivals_.mutex);
    arrivals_.changed.wait(lock, [&] { return arrivals_.is_open; });
    if (!arrivals_.error.empty()) throw Error("{}", arrivals_.error);
    arrivals_.all.push_back({tag.micro_batch(), message.size(), steady_clock::now()});
  }
  Buffer receive(Tag /*tag*/, size_t bound) override { return Buffer(bound); }
  void cancel() override { arrivals_.cancelled = true; }
  FrameCheck frame_check() const override { return FrameCheck::trust; }

 private:
  Arrivals& arrivals_;
};

class EmulatedLinks : public testing::Test {
 protected:
  /// A transport over a link, with a wire of its own.
  std::unique_ptr<EmulatedLink> over(const LinkRate& rate, const std::stop_token& end = {}) {
    return std::make_unique<EmulatedLink>(std::make_unique<Recorder>(arrivals_),
                                          std::make_shared<EmulatedWire>(rate), end);
  }

  static constexpr LinkRate kNone = {};
  static constexpr LinkRate kSlowest = {.bytes_per_second = kLeastBandwidth, .latency_seconds = 1e6};
  Arrivals arrivals_;
};

TEST_F(EmulatedLinks, HandOnInTheOrderSentAndNeverBeforeTheTime) {
  const LinkRate rate{.bytes_per_second = 1e6, .latency_seconds = 0.01};
  const auto start = steady_clock::now();
  {
    const auto link = over(rate);
    for (uint32_t i = 0; i < 5; ++i) link->send({i % 2, kForward, i}, frame_of(10'000, 0, i));
    link->drain();
    EXPECT_THAT(arrivals_.micro_batches(), ElementsAre(0, 1, 2, 3, 4));
  }
  for (size_t i = 0; i < arrivals_.all.size(); ++i) {
    EXPECT_EQ(arrivals_.all[i].size, 10'000 + kFrameHeaderSize);
    EXPECT_GE(arrivals_.all[i].at - start, 10ms + 10ms * static_cast<int>(i + 1));
  }
}

TEST_F(EmulatedLinks, ReceivesAndChecksAsTheOtherTransport) {
  const auto link = over(kSlowest);
  link->expect({0, kForward, 0}, 100);
  EXPECT_EQ(link->receive({0, kForward, 0}, 100).capacity(), 100U);
  EXPECT_EQ(link->frame_check(), FrameCheck::trust);
}

TEST_F(EmulatedLinks, OfOneProcessShareItsWire) {
  Arrivals others;
  const auto start = steady_clock::now();
  {
    const auto wire = std::make_shared<EmulatedWire>(LinkRate{.bytes_per_second = 1e6});
    EmulatedLink first(std::make_unique<Recorder>(arrivals_), wire);
    EmulatedLink second(std::make_unique<Recorder>(others), wire);
    first.send({0, kForward, 0}, frame_of(30'000, 0, 0));
    second.send({0, kForward, 1}, frame_of(10'000, 0, 1));
  }
  ASSERT_EQ(others.all.size(), 1U);
  EXPECT_GE(others.all[0].at - start, 40ms);
}

TEST_F(EmulatedLinks, SendWhatIsUnderWayBeforeTheyGo) {
  for (uint32_t i = 0; i < 3; ++i) {
    over({.latency_seconds = 0.01})->send({0, kForward, i}, frame_of(10, 0, i));
    EXPECT_EQ(arrivals_.micro_batches().size(), i + 1);
  }
}

// Where a wait did not end, that of a call or that of the thread at the end, these would take eleven days.

TEST_F(EmulatedLinks, CancelEndsTheWaitForWhatIsUnderWay) {
  const auto link = over(kSlowest);
  link->send({0, kForward, 0}, frame_of(10'000, 0, 0));
  auto waiting = std::async(std::launch::async, [&] { return message_of<Error>([&] { link->drain(); }); });
  ASSERT_EQ(waiting.wait_for(50ms), std::future_status::timeout);
  link->cancel();
  EXPECT_EQ(waiting.get(), "the emulated link has been given up");
  EXPECT_TRUE(arrivals_.cancelled);
  EXPECT_THAT(arrivals_.micro_batches(), IsEmpty());
  for (const auto& call : std::vector<std::function<void()>>{[&] {
                                                               link->send({0, kForward, 1}, frame_of(1, 0, 1));
                                                             },
                                                             [&] {
                                                               link->receive({0, kForward, 1}, 100);
                                                             },
                                                             [&] { link->drain(); }}) {
    EXPECT_EQ(message_of<Error>(call), "the emulated link has been given up");
  }
}

TEST_F(EmulatedLinks, CancelEndsTheWaitForRoom) {
  const auto link = over(kSlowest);
  auto waiting = std::async(std::launch::async, [&] {
    return message_of<Error>([&] {
      for (uint32_t i = 0;; ++i) link->send({0, kForward, i}, frame_of(10'000, 0, i));
    });
  });
  ASSERT_EQ(waiting.wait_for(50ms), std::future_status::timeout);
  link->cancel();
  EXPECT_EQ(waiting.get(), "the emulated link has been given up");
}

TEST_F(EmulatedLinks, TheEndOfTheGroupEndsEveryWait) {
  std::stop_source end;
  const auto link = over(kSlowest, end.get_token());
  link->send({0, kForward, 0}, frame_of(10'000, 0, 0));
  auto waiting = std::async(std::launch::async, [&] { return message_of<Error>([&] { link->drain(); }); });
  ASSERT_EQ(waiting.wait_for(50ms), std::future_status::timeout);
  end.request_stop();
  EXPECT_EQ(waiting.get(), "the emulated link: this rank has given up");
  const auto late = over(kSlowest, end.get_token());
  EXPECT_EQ(message_of<Error>([&] {
              late->send({0, kForward, 0}, frame_of(1, 0, 0));
            }),
            "the emulated link: this rank has given up");
}

TEST_F(EmulatedLinks, AChannelHasRoomForSixteenAndTheOthersTheirs) {
  arrivals_.is_open = false;
  const auto link = over(kNone);
  for (uint32_t i = 0; i < 16; ++i) link->send({0, kForward, i}, frame_of(1, 0, i));
  std::atomic<bool> sent = false;
  auto seventeenth = std::async(std::launch::async, [&] {
    link->send({0, kForward, 16}, frame_of(1, 0, 16));
    sent = true;
  });
  link->send({0, Direction::gradient, 17}, frame_of(1, 0, 17));  // would never return without room of its own
  EXPECT_EQ(seventeenth.wait_for(50ms), std::future_status::timeout);
  EXPECT_FALSE(sent);
  arrivals_.open();
  seventeenth.get();
  link->drain();
  EXPECT_EQ(arrivals_.micro_batches().size(), 18U);
}

TEST_F(EmulatedLinks, WhatCannotBeSentIsHeardOfByWhoSendsAndWaits) {
  arrivals_.error = "rank 1 is gone";
  const auto link = over(kNone);
  link->send({0, kForward, 0}, frame_of(1, 0, 0));
  for (const auto& call : std::vector<std::function<void()>>{[&] { link->drain(); },
                                                             [&] {
                                                               link->send({0, kForward, 1}, frame_of(1, 0, 1));
                                                             },
                                                             [&] {
                                                               link->receive({0, kForward, 1}, 100);
                                                             }}) {
    EXPECT_EQ(message_of<Error>(call), "rank 1 is gone");
  }
}

}  // namespace
}  // namespace strait
