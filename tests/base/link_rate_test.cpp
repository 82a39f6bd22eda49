#include "strait/base/link_rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "strait/base/error.h"

namespace strait {
namespace {

using testing::HasSubstr;

TEST(LinkRate, IsARateAndALatency) {
  const LinkRate both = parse_link_rate("200Mbps,50ms", "--link");
  EXPECT_DOUBLE_EQ(both.bytes_per_second, 25e6);
  EXPECT_DOUBLE_EQ(both.latency_seconds, 0.05);
  EXPECT_EQ(parse_link_rate("1Gbps", "--link").latency_seconds, 0);
  const LinkRate late = parse_link_rate("unlimited,20ms", "--link");
  EXPECT_TRUE(std::isinf(late.bytes_per_second));
  EXPECT_DOUBLE_EQ(late.latency_seconds, 0.02);
  EXPECT_EQ(link_rate_text(both), "200 Mbps with 50 ms latency");
  EXPECT_EQ(link_rate_text(late), "an unlimited link with 20 ms latency");
  EXPECT_EQ(link_rate_text({}), "an unlimited link");
}

TEST(LinkRate, WrongOnesAreNamed) {
  const std::pair<const char*, const char*> wrong[] = {{"", "expected a rate of at least 1kbps"},
                                                       {"50ms", "expected a rate of at least 1kbps"},
                                                       {"1Mbps,", "expected a time"},
                                                       {"1Mbps,2ms,3ms", "expected a time"},
                                                       {"999bps", "expected a rate of at least 1kbps"}};
  for (const auto& [text, expected] : wrong) {
    try {
      parse_link_rate(text, "--link");
      ADD_FAILURE() << text;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr(std::string("--link: ") + expected)) << text;
    }
  }
}

}  // namespace
}  // namespace strait
