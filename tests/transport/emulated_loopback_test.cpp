#include "strait/transport/emulated_loopback.h"

#include <gtest/gtest.h>

#include <future>

#include "strait/base/units.h"
#include "tests/support/errors.h"
#include "tests/transport/meetings.h"

namespace strait {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using test::frame_of;

std::shared_ptr<EmulatedWire> wire_of(const LinkRate& rate) { return std::make_shared<EmulatedWire>(rate); }

/// Three stages with a wire each.
EmulatedLoopback three_stages(const LinkRate& first, const LinkRate& second, const LinkRate& third) {
  const auto middle = wire_of(second);
  return EmulatedLoopback({{wire_of(first), middle}, {middle, wire_of(third)}});
}

TEST(EmulatedLoopback, AMessageIsWaitedForUntilItHasArrived) {
  EmulatedLoopback transport = three_stages({.latency_seconds = 0.02}, {.bytes_per_second = 1e6}, {});
  const auto start = steady_clock::now();
  transport.send({0, Direction::activation, 0}, frame_of(10'000, 3, 0));
  transport.send({0, Direction::gradient, 0}, frame_of(20'000, 3, 0));
  transport.send({1, Direction::activation, 0}, frame_of(20'000, 3, 0));
  EXPECT_EQ(parse_frame(transport.receive({0, Direction::activation, 0}, 20'000).bytes()).payload.size(),
            10'000U);
  EXPECT_GE(steady_clock::now() - start, 20ms);
  transport.receive({0, Direction::gradient, 0}, 30'000);
  EXPECT_GE(steady_clock::now() - start, 20ms);
  transport.receive({1, Direction::activation, 0}, 30'000);  // behind the other on the wire of the second stage
  EXPECT_GE(steady_clock::now() - start, 40ms);
}

// With one wire for all it would take a quarter of an hour.
TEST(EmulatedLoopback, AStageDoesNotWaitForTheWireOfAnother) {
  EmulatedLoopback transport = three_stages({.bytes_per_second = kLeastBandwidth}, {}, {});
  const Tag slow(0, Direction::activation, 0);
  const std::vector<Tag> others = {
      {0, Direction::gradient, 0}, {1, Direction::activation, 0}, {1, Direction::gradient, 0}};
  transport.send(slow, frame_of(100'000, 0, 7));
  for (size_t i = 0; i < others.size(); ++i)
    transport.send(others[i], frame_of(100'000, 0, static_cast<uint32_t>(i)));
  const auto receive = [&](const Tag& tag) {
    return parse_frame(transport.receive(tag, 200'000).bytes()).header.micro_batch;
  };
  std::vector<uint32_t> came;
  auto receiving = std::async(std::launch::async, [&] {
    for (const Tag& tag : others) came.push_back(receive(tag));
  });
  EXPECT_EQ(receiving.wait_for(30s), std::future_status::ready);
  auto waiting = std::async(std::launch::async, [&] {
    receiving.get();
    return test::message_of<Error>([&] { receive(slow); });
  });
  EXPECT_EQ(waiting.wait_for(50ms), std::future_status::timeout)
      << "the first stage's own message is under way";
  transport.cancel();
  EXPECT_EQ(waiting.get(), "the emulated link has been given up");
  EXPECT_EQ(came, (std::vector<uint32_t>{0, 1, 2}));
}

TEST(EmulatedLoopback, KeepsTagsApartAndOrderWithinATag) {
  EmulatedLoopback transport = three_stages({.latency_seconds = 1e-3}, {}, {});
  const Tag tag(0, Direction::activation, 0);
  for (uint8_t i = 0; i < 3; ++i) transport.send(tag, frame_of(i, i, i));
  transport.send({0, Direction::activation, 1}, frame_of(7, 0, 1));
  EXPECT_EQ(transport.receive({0, Direction::activation, 1}, 100).size(), kFrameHeaderSize + 7);
  for (uint8_t i = 0; i < 3; ++i) EXPECT_EQ(transport.receive(tag, 100).size(), kFrameHeaderSize + i);
  EXPECT_EQ(transport.frame_check(), FrameCheck::trust);
}

TEST(EmulatedLoopback, AMissingOrTooLongMessageIsAnError) {
  EmulatedLoopback transport = three_stages({}, {}, {});
  const Tag tag(1, Direction::gradient, 2);
  EXPECT_THROW(transport.receive(tag, 10), WireError);
  transport.send(tag, frame_of(11, 0, 0));
  EXPECT_THROW(transport.receive(tag, 10), WireError);
}

TEST(EmulatedLoopback, CancelEndsTheWait) {
  EmulatedLoopback transport = three_stages({.latency_seconds = 1e6}, {}, {});
  const Tag tag(0, Direction::activation, 0);
  transport.send(tag, frame_of(1, 0, 0));
  auto waiting = std::async(std::launch::async,
                            [&] { return test::message_of<Error>([&] { transport.receive(tag, 100); }); });
  EXPECT_EQ(waiting.wait_for(50ms), std::future_status::timeout);
  transport.cancel();
  EXPECT_EQ(waiting.get(), "the emulated link has been given up");
}

}  // namespace
}  // namespace strait
