#include "strait/transport/emulated_wire.h"

#include <gtest/gtest.h>

#include <limits>

#include "strait/base/units.h"

namespace strait {
namespace {

using namespace std::chrono_literals;

constexpr EmulatedWire::Time kStart = EmulatedWire::Time(1h);

/// A packet a second.
constexpr double kPacket = EmulatedWire::kPacketPayload + EmulatedWire::kPacketHeaders;
constexpr size_t kPayload = EmulatedWire::kPacketPayload;

TEST(EmulatedWire, AMessageTakesItsPacketsAndTheLatency) {
  EXPECT_EQ(kPayload, 1448U);
  EXPECT_EQ(kPacket, 1514);
  const auto time_of = [](size_t size) {
    return EmulatedWire({.bytes_per_second = kPacket, .latency_seconds = 0.25}).send(size, kStart) - kStart;
  };
  EXPECT_EQ(time_of(kPayload), 1250ms);
  EXPECT_EQ(time_of(3 * kPayload), 3250ms);
  const auto with_headers_of_two = [](size_t size) {
    return EmulatedWire({.bytes_per_second = 1}).send(size, kStart) - kStart;
  };
  EXPECT_EQ(with_headers_of_two(kPayload + 1), 1448s + 1s + 2 * 66s);
  EXPECT_EQ(with_headers_of_two(1), 67s);
}

TEST(EmulatedWire, CarriesOneMessageAtATimeAndLatenciesOverlap) {
  EmulatedWire wire({.bytes_per_second = kPacket, .latency_seconds = 10});
  EXPECT_EQ(wire.send(2 * kPayload, kStart), kStart + 12s);
  EXPECT_EQ(wire.send(kPayload, kStart + 1s), kStart + 13s);  // begins at 2 s, when the first has gone
  EXPECT_EQ(wire.send(kPayload, kStart + 5s), kStart + 16s);
}

TEST(EmulatedWire, AnIdleOneSavesNothingUp) {
  EmulatedWire wire({.bytes_per_second = kPacket});
  wire.send(kPayload, kStart);
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(wire.send(kPayload, kStart + 100s), kStart + 100s + i * 1s);
}

TEST(EmulatedWire, AnUnlimitedOneHasItsLatencyAlone) {
  EmulatedWire wire({.bytes_per_second = std::numeric_limits<double>::infinity(), .latency_seconds = 0.02});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(wire.send(1'000'000'000, kStart), kStart + 20ms);
}

TEST(EmulatedWire, WhatTakesLongerThanTheClockCountsIsInTheFuture) {
  EmulatedWire wire({.bytes_per_second = kLeastBandwidth, .latency_seconds = 1e300});
  EXPECT_GT(wire.send(std::numeric_limits<size_t>::max() / 4, kStart), kStart + 24h);
}

}  // namespace
}  // namespace strait
