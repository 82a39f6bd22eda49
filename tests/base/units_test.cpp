#include "strait/base/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "strait/base/error.h"
#include "tests/support/errors.h"

namespace strait {
namespace {

using testing::HasSubstr;

TEST(Units, Durations) {
  EXPECT_DOUBLE_EQ(parse_seconds("20ms", "a"), 0.02);
  EXPECT_DOUBLE_EQ(parse_seconds("1.5s", "a"), 1.5);
  EXPECT_DOUBLE_EQ(parse_seconds("300 us", "a"), 300e-6);
  EXPECT_EQ(parse_seconds("0", "a"), 0);
  EXPECT_EQ(parse_seconds("0s", "a"), 0);
}

TEST(Units, Bandwidths) {
  for (const char* text : {"100Mbps", "100Mbit/s", "100mbit", "100 Mb/s", "12.5MB/s", "100000kbps", "0.1Gbps",
                           "1e8bps", "1e8bit/s"}) {
    EXPECT_DOUBLE_EQ(parse_bandwidth(text, "a"), 12.5e6) << text;
  }
  EXPECT_TRUE(std::isinf(parse_bandwidth("unlimited", "a")));
}

TEST(Units, NobodyWaitsForever) {
  EXPECT_EQ(parse_seconds("876000h", "k"), kLongestSeconds);
  EXPECT_THROW(parse_seconds("876001h", "k"), InputError);
  EXPECT_THROW(parse_seconds("1e300s", "k"), InputError);
}

TEST(Units, WrongOnesAreNamed) {
  for (const char* text : {"", "20", "ms", "-1ms", "20 days", "20msx", "nan s", "infs", "1e999s", " 20ms"}) {
    EXPECT_EQ(test::error_of<InputError>([&] { parse_seconds(text, "--flag"); }),
              std::string("--flag: expected a time such as 20ms, 1.5s or 10m, found \"") + text + "\"");
  }
  for (const char* text : {"", "100", "Mbps", "0Mbps", "-1Mbps", "999bps", "100Mbp", "100Tbps", "100MBps",
                           "100xbit/s", "100M", "Unlimited", "inf", "1e999Mbps"}) {
    const auto found = test::error_of<InputError>([&] { parse_bandwidth(text, "--flag"); });
    EXPECT_THAT(found, HasSubstr("--flag: expected a rate of at least 1kbps such as 100Mbps")) << text;
    EXPECT_THAT(found, HasSubstr(std::string("found \"") + text + "\""));
  }
}

TEST(Units, CountsAreGroupedAndPlural) {
  EXPECT_EQ(count_text(0, "step"), "0 steps");
  EXPECT_EQ(count_text(1, "process"), "1 process");
  EXPECT_EQ(count_text(2, "process"), "2 processes");
  EXPECT_EQ(count_text(2, "micro-batch"), "2 micro-batches");
  EXPECT_EQ(count_text(2, "epoch"), "2 epochs");
  EXPECT_EQ(count_text(999, "step"), "999 steps");
  EXPECT_EQ(count_text(1000, "step"), "1,000 steps");
  EXPECT_EQ(count_text(11173962, "parameter"), "11,173,962 parameters");
}

TEST(Units, TextsReadBack) {
  EXPECT_EQ(duration_text(0.02), "20 ms");
  EXPECT_EQ(duration_text(1.5), "1.5 s");
  EXPECT_EQ(duration_text(0.00012345), "123.5 us");
  EXPECT_EQ(duration_text(0.99999), "1 s");
  EXPECT_EQ(duration_text(0), "0 s");
  EXPECT_EQ(duration_text(1234.4), "1234 s");
  EXPECT_EQ(bandwidth_text(12.5e6), "100 Mbps");
  EXPECT_EQ(bandwidth_text(125e6), "1 Gbps");
  EXPECT_EQ(bandwidth_text(parse_bandwidth("56kbps", "a")), "56 kbps");
  EXPECT_EQ(bandwidth_text(parse_bandwidth("unlimited", "a")), "unlimited");
  for (const double seconds : {1e-7, 0.5, 12.0}) {
    EXPECT_DOUBLE_EQ(parse_seconds(duration_text(seconds), "a"), seconds);
  }
}

}  // namespace
}  // namespace strait
