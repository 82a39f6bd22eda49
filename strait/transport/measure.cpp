#include "strait/transport/measure.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "strait/base/random.h"
#include "strait/base/times.h"

namespace strait {
namespace {

constexpr int64_t kFirst = int64_t{16} << 10;    // bytes of the first message
constexpr int64_t kLargest = int64_t{32} << 20;  // and of the last ones
constexpr int64_t kGrowth = 4;
constexpr int kFewestRoundTrips = 5;  // behind the first, which does not count
constexpr int kMostRoundTrips = 50;
constexpr double kRoundTripsShare = 0.25;  // of the time for one way
constexpr double kWireLeast = 0.1;         // of a transfer's time: the rest may be the way of the first byte
constexpr int kClockRoundTrips = 7;
constexpr int64_t kEnd = 0;
constexpr int64_t kNext = 1;

/// Bytes that nothing on the way can make fewer.
at::Tensor random_bytes(int64_t size) {
  at::Tensor bytes = at::empty({size}, at::kByte);
  CounterRandom random(make_key(static_cast<uint64_t>(size)));
  auto* const data = static_cast<uint8_t*>(bytes.data_ptr());
  for (int64_t at = 0; at < size; at += 8) {
    const uint64_t word = random.next();
    std::memcpy(data + at, &word, static_cast<size_t>(std::min<int64_t>(8, size - at)));
  }
  return bytes;
}

/// One rank's end of the conversation with another.
class Probe {
 public:
  Probe(Group& group, int other, std::string what) : group_(group), other_(other), what_(std::move(what)) {}

  void say(int64_t number) {
    at::Tensor word = at::empty({1}, at::kLong);
    *static_cast<int64_t*>(word.data_ptr()) = number;
    group_.send(word, other_, what_);
  }

  int64_t hear() {
    at::Tensor word = at::empty({1}, at::kLong);
    group_.receive(word, other_, what_);
    return *static_cast<const int64_t*>(word.data_ptr());
  }

  /// Median seconds of a small message and its answer.
  double round_trip(double seconds) {
    Times times;
    const Stopwatch watch;
    for (int round = 0; round <= kMostRoundTrips; ++round) {
      if (round > kFewestRoundTrips && watch.seconds() > seconds) break;
      times.add(timed([&] {
        say(kNext);
        hear();
      }));
    }
    say(kEnd);
    return times.median();
  }

  void answer_round_trips() {
    while (hear() != kEnd) say(kNext);
  }

  /// Bytes per second to the other rank.
  double rate(double seconds, double round_trip) {
    const Stopwatch watch;
    at::Tensor message = random_bytes(kFirst);
    double bytes = 0;  // of messages of that size, and what they took
    double taken = 0;
    while (true) {
      const auto size = static_cast<double>(message.numel());
      const double all = timed([&] { transfer(message); });
      bytes += size;
      taken += std::max(all - round_trip, kWireLeast * all);
      const double rate = bytes / taken;
      const double left = seconds - watch.seconds() - round_trip;
      if (size / rate > left) {
        say(kEnd);
        return rate;
      }
      const int64_t next = std::min({kGrowth * message.numel(), kLargest, static_cast<int64_t>(rate * left)});
      if (next <= message.numel()) continue;
      message = random_bytes(next);
      bytes = taken = 0;
    }
  }

  void answer_rate() {
    at::Tensor message = at::empty({0}, at::kByte);
    for (int64_t size = hear(); size != kEnd; size = hear()) {
      if (size < 0 || size > kLargest) throw WireError("{}: a message of {} bytes is announced", what_, size);
      if (size != message.numel()) message = at::empty({size}, at::kByte);
      group_.receive(message, other_, what_);
      say(kNext);
    }
  }

  void tell(double value) {
    int64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    say(bits);
  }

  double be_told() {
    const int64_t bits = hear();
    double value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }

 private:
  /// Until the other side has had all of it.
  void transfer(const at::Tensor& message) {
    say(message.numel());
    group_.send(message, other_, what_);
    hear();
  }

  Group& group_;
  int other_;
  std::string what_;
};

int64_t wall_clock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

constexpr double kNanosecond = 1e-9;
constexpr const char* kClocks = "comparison of clocks";

}  // namespace

LinkSpeed measure_link(Group& group, int other, double seconds) {
  const bool is_low = group.rank() < other;
  Probe probe(group, other, "measurement of the link");
  LinkSpeed speed;
  if (is_low) {
    const double round_trip = probe.round_trip(kRoundTripsShare * seconds);
    speed.latency_seconds = round_trip / 2;
    speed.up = probe.rate(seconds, round_trip);
    probe.tell(speed.latency_seconds);
    probe.tell(speed.up);
    probe.answer_rate();
    speed.down = probe.be_told();
  } else {
    probe.answer_round_trips();
    probe.answer_rate();
    speed.latency_seconds = probe.be_told();
    speed.up = probe.be_told();
    speed.down = probe.rate(seconds, 2 * speed.latency_seconds);
    probe.tell(speed.down);
  }
  return speed;
}

double measure_clock(Group& group, int other) {
  Probe probe(group, other, kClocks);
  double shortest = 0;
  double ahead = 0;
  for (int round = 0; round < kClockRoundTrips; ++round) {
    const int64_t before = wall_clock();
    probe.say(kNext);
    const int64_t theirs = probe.hear();
    const int64_t behind = wall_clock();
    const double round_trip = kNanosecond * static_cast<double>(behind - before);
    if (round > 0 && round_trip >= shortest) continue;
    shortest = round_trip;
    ahead = kNanosecond * static_cast<double>(theirs - before) - round_trip / 2;
  }
  probe.say(kEnd);
  return ahead;
}

void answer_clock(Group& group, int other) {
  Probe probe(group, other, kClocks);
  while (probe.hear() != kEnd) probe.say(wall_clock());
}

}  // namespace strait
