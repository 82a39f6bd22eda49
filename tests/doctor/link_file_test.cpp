#include "strait/doctor/link_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "strait/base/error.h"
#include "tests/doctor/invented.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class LinkFiles : public testing::Test {
 protected:
  /// What the doctor writes of three ranks whose links differ in every way.
  static json written() {
    auto found = test::three_ranks();
    found.pairs[0].speed = {.up = 1e6, .down = 2e6, .latency_seconds = 0.25};
    found.pairs[2].speed = {.up = 3e6, .down = 4e6, .latency_seconds = 0.5};
    found.pairs[2].route = Route::relayed;
    return json::parse(diagnosis_json(found, findings_of(found)));
  }

  LinkFile read(const std::string& text) {
    test::write_file(path_, text);
    return read_link_file(path_);
  }

  /// What reading it complains of, without the file's name, which stands before.
  std::string complaint(const json& value) {
    const auto text = test::message_of<InputError>([&] { read(value.dump()); });
    EXPECT_THAT(text, testing::StartsWith(path_ + ": "));
    return text.substr(std::min(text.size(), path_.size() + 2));
  }

  static Config config(const std::vector<std::string>& overrides = {}) {
    std::vector<std::string> all = {R"(model.cuts=["layer1", "layer2"])"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    return parse_config("", "empty.toml", all);
  }

  test::TempDir dir_;
  std::string path_ = dir_ / "links.json";
};

TEST_F(LinkFiles, AreReadAsTheyWereWritten) {
  const LinkFile file = read(written().dump());
  EXPECT_EQ(file.ranks, 3);
  ASSERT_EQ(file.boundaries.size(), 2U);
  const auto& [place, route, link] = file.boundaries[1];
  EXPECT_EQ(place.name, "layer2");
  EXPECT_EQ(place.before, 1);
  EXPECT_EQ(place.behind, 2);
  EXPECT_EQ(route, Route::relayed);
  EXPECT_EQ(link.activations.bytes_per_second, 3e6);
  EXPECT_EQ(link.gradients.bytes_per_second, 4e6);
  EXPECT_EQ(link.activations.latency_seconds, 0.5);
  EXPECT_EQ(link.gradients.latency_seconds, 0.5);
  EXPECT_EQ(file.boundaries[0].link.activations.bytes_per_second, 1e6);
  EXPECT_EQ(written().at("boundaries").at(0).at("activation_bits_per_second"), 8e6);
  EXPECT_EQ(written().at("ranks").at(2).at("host"), "node2");
  EXPECT_EQ(written().at("findings").size(), 1U);
}

TEST_F(LinkFiles, ABoundaryMayLeadFromAHigherRankToALower) {
  auto found = test::three_ranks();
  found.boundaries.push_back({"layer3", 0, 2, 0});
  found.pairs[1].speed = {.up = 1e6, .down = 2e6, .latency_seconds = 0};
  const LinkFile file = read(diagnosis_json(found, {}));
  EXPECT_EQ(file.boundaries.at(2).link.activations.bytes_per_second, 2e6);
  EXPECT_EQ(file.boundaries.at(2).link.gradients.bytes_per_second, 1e6);
}

TEST_F(LinkFiles, ABoundaryWithinAProcessHasNoLimit) {
  auto found = test::three_ranks();
  found.boundaries[1] = {"layer2", 0, 1, 1};
  const LinkFile file = read(diagnosis_json(found, {}));
  EXPECT_TRUE(std::isinf(file.boundaries.at(1).link.activations.bytes_per_second));
  EXPECT_EQ(file.boundaries.at(1).route, Route::local);
}

TEST_F(LinkFiles, ThatAreDamagedAreNamedWithTheKey) {
  EXPECT_THAT(test::message_of<InputError>([&] { read_link_file(dir_ / "none.json"); }),
              HasSubstr("none.json"));
  EXPECT_THAT(test::message_of<InputError>([&] { read(written().dump().substr(0, 50)); }),
              HasSubstr("links.json: is not JSON"));
  const auto with = [](const std::string& pointer, const json& value) {
    json changed = written();
    changed[json::json_pointer(pointer)] = value;
    return changed;
  };
  EXPECT_EQ(complaint(json::array()), "expected a file that strait doctor --ranks --out has made, found array");
  EXPECT_EQ(complaint(with("/made_by", "somebody")),
            "expected a file that strait doctor --ranks --out has made, found object");
  EXPECT_EQ(complaint(with("/schema", 2)),
            "schema: expected 1, as this version of strait doctor makes it, found 2");
  EXPECT_EQ(complaint(with("/boundaries", "all")), "boundaries: expected an array, found \"all\"");
  EXPECT_EQ(complaint(with("/boundaries/1/name", 7)), "boundaries[1].name: expected a string, found 7");
  EXPECT_EQ(complaint(with("/boundaries/1/route", "by air")),
            "boundaries[1].route: expected none, local, direct or relayed, found \"by air\"");
  EXPECT_EQ(complaint(with("/boundaries/0/activation_bits_per_second", 0)),
            "boundaries[0].activation_bits_per_second: expected bits per second above 0, found 0");
  EXPECT_EQ(complaint(with("/boundaries/0/gradient_bits_per_second", nullptr)),
            "boundaries[0].gradient_bits_per_second: expected a number, found null");
  EXPECT_EQ(complaint(with("/boundaries/0/latency_seconds", -1)),
            "boundaries[0].latency_seconds: expected seconds from 0 on, found -1");
  json without = written();
  without.at("boundaries").at(1).erase("rank_behind");
  EXPECT_EQ(complaint(without), "boundaries[1].rank_behind: missing");
}

TEST_F(LinkFiles, MustFitTheConfiguration) {
  const LinkFile file = read(written().dump());
  EXPECT_EQ(boundaries_for(file, path_, config(), 3).size(), 2U);
  const auto complaint_about = [&](const Config& other, int ranks) {
    return test::message_of<InputError>([&] { boundaries_for(file, "links.json", other, ranks); });
  };
  EXPECT_EQ(complaint_about(config(), 4), "links.json: ranks: expected 4, as the configuration has, found 3");
  EXPECT_EQ(complaint_about(config({R"(model.cuts=["layer1"])"}), 3),
            "links.json: boundaries: expected 1, as model.cuts makes, found 2");
  EXPECT_EQ(complaint_about(config({R"(model.cuts=["layer1", "layer3"])"}), 3),
            "links.json: boundaries[1].name: expected \"layer3\", as model.cuts has it, found \"layer2\"");
  LinkFile turned = file;
  std::swap(turned.boundaries[1].place.before, turned.boundaries[1].place.behind);
  EXPECT_EQ(
      test::message_of<InputError>([&] { boundaries_for(turned, "links.json", config(), 3); }),
      "links.json: boundaries[1]: expected the ranks 1 and 2, as the configuration places the stages, found 2 "
      "and 1");
}

}  // namespace
}  // namespace strait
