#include "strait/experiment/handshake.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strait/transport/handshake.h"
#include "tests/support/errors.h"
#include "tests/support/nested.h"

namespace strait {
namespace {

using test::message_of;

class Handshakes : public testing::Test {
 protected:
  std::string handshake(const std::string& flags = "") { return handshake_of(config_, 2, flags); }

  Config config_;
};

TEST_F(Handshakes, ThatAreAlikeAreAccepted) {
  const std::string mine = handshake();
  config_.data.root = "/another/place";
  config_.train.device = "cpu";
  config_.pipeline.link = "200Mbps,50ms";
  EXPECT_NO_THROW(check_handshakes(0, {mine, handshake()}));
}

TEST_F(Handshakes, PathsOfTheDatasFilesMayDiffer) {
  const auto handshake_with = [](const char* key, const char* value) {
    const std::vector<std::string> overrides = {"data.kind=tensors", "model.kind=mlp",
                                                fmt::format("data.{}={}", key, value)};
    return handshake_of(parse_config("", "run.toml", overrides), 2, "");
  };
  EXPECT_NO_THROW(
      check_handshakes(0, {handshake_with("train_file", "/one/a"), handshake_with("train_file", "/two/a")}));
  EXPECT_THROW(check_handshakes(0, {handshake_with("train_limit", "5"), handshake_with("train_limit", "6")}),
               Error);
}

TEST_F(Handshakes, ThatDifferAreNamed) {
  const std::string mine = handshake();
  EXPECT_EQ(message_of<Error>([&] {
              check_handshakes(0, {mine, handshake("--resume")});
            }),
            "rank 0: rank 1 has flags \"--resume\", this one \"\"; all must be the same");
  config_.train.epochs = 7;
  EXPECT_EQ(message_of<Error>([&] {
              check_handshakes(0, {mine, handshake()});
            }),
            "rank 0: rank 1 has train.epochs = 7, this one 100; all must be the same");
  config_.train.epochs = 100;
  config_.compression.boundaries = {{"layer2", {.codec = "quant:8", .feedback = {}}, {}}};
  EXPECT_EQ(message_of<Error>([&] {
              check_handshakes(0, {mine, handshake()});
            }),
            "rank 0: rank 1 has compression.boundaries = [{ name = \"layer2\", activations = { codec = "
            "\"quant:8\" } }], this one []; all must be the same");
}

TEST_F(Handshakes, TheFirstSettingThatDiffersIsNamedWhereOneHasMore) {
  const auto complaint = [](std::vector<std::pair<std::string, std::string>> settings) {
    const Handshake mine{.processes = 2, .settings = {{"stages", "2"}, {"seed", "7"}}};
    const Handshake other{.processes = 2, .settings = std::move(settings)};
    return message_of<Error>([&] { check_handshakes(0, {mine.text(), other.text()}); });
  };
  EXPECT_EQ(complaint({{"stages", "3"}, {"seed", "7"}, {"cut", "a"}}),
            "rank 0: rank 1 has stages = 3, this one 2; all must be the same");
  EXPECT_EQ(complaint({{"stages", "2"}, {"cut", "a"}, {"seed", "7"}}),
            "rank 0: rank 1 has cut where this one has seed; all must be the same");
  EXPECT_EQ(complaint({{"stages", "2"}, {"seed", "7"}, {"cut", "a"}}),
            "rank 0: rank 1 has 3 settings, this one 2; all must be the same");
}

TEST_F(Handshakes, OfAnotherWireVersionAreRefusedWithBothNumbers) {
  std::string old = handshake();
  old.replace(old.find("\"wire_version\":3"), 16, "\"wire_version\":1");
  EXPECT_EQ(message_of<Error>([&] {
              check_handshakes(0, {handshake(), old});
            }),
            "rank 0: rank 1 has wire version 1, this one 3; all must be the same");
}

TEST_F(Handshakes, ThatAreNoneAreErrorsOfTheWire) {
  const auto complaint = [&](const std::string& other) {
    return message_of<WireError>([&] { check_handshakes(1, {other, handshake()}); });
  };
  EXPECT_EQ(complaint(test::nested(300'000)), "the handshake of rank 0: is nested deeper than 100 levels");
  EXPECT_EQ(complaint("{\"flags\": " + test::nested(300'000) + "}"),
            "the handshake of rank 0: is nested deeper than 100 levels");
  EXPECT_EQ(complaint("hello"), "the handshake of rank 0: is not JSON (at byte 1)");
  EXPECT_EQ(complaint("{\"size\": 1e999}"),
            "the handshake of rank 0: the number 1e999 is too large (at byte 14)");
  EXPECT_EQ(complaint("[]"), "rank 1: rank 0 speaks another language");
  EXPECT_EQ(complaint("{}"), "rank 1: rank 0 speaks another language");
}

}  // namespace
}  // namespace strait
