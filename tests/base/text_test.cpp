#include "strait/base/text.h"

#include <gtest/gtest.h>

#include "strait/base/error.h"

namespace strait {
namespace {

const std::vector<std::string> kKeys = {"epochs", "batch_size", "momentum", "lr"};

TEST(Text, SuggestsTheNearestName) {
  EXPECT_EQ(suggestion("epoch", kKeys), " (did you mean \"epochs\"?)");
  EXPECT_EQ(suggestion("batchsize", kKeys), " (did you mean \"batch_size\"?)");
  EXPECT_EQ(suggestion("rl", kKeys), " (did you mean \"lr\"?)");
  EXPECT_EQ(suggestion("optimizer", kKeys), "");
}

TEST(Text, SplitKeepsEmptyParts) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(split("", ','), (std::vector<std::string>{""}));
}

TEST(Text, IntegersAreChecked) {
  EXPECT_EQ(parse_integer("8", "bits", 1, 8), 8);
  for (const char* bad : {"", "9", "0", "-1", "4x", "4.0", " 4", "99999999999999999999"}) {
    EXPECT_THROW(parse_integer(bad, "bits", 1, 8), InputError) << bad;
  }
}

}  // namespace
}  // namespace strait
