#include "strait/config/manual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "strait/base/text.h"
#include "strait/config/kinds.h"
#include "tests/support/variable.h"

namespace strait {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

/// The manual's lines by their keys, those that are commented out in force.
std::map<std::string, std::string> lines_by_key(const std::string& manual) {
  std::map<std::string, std::string> lines;
  std::string table;
  for (std::string line : split(manual, '\n')) {
    if (line.starts_with("[")) table = line.substr(1, line.size() - 2) + ".";
    if (line.starts_with("# ")) line.erase(0, 2);
    const size_t equals = line.find(" = ");
    if (equals == std::string::npos) continue;
    EXPECT_TRUE(lines.emplace(table + line.substr(0, equals), line).second) << line;
  }
  return lines;
}

TEST(Manual, OfTheDefaultsReadsBackAsTheDefaults) {
  for (const char* root : {static_cast<const char*>(nullptr), "/from/environment"}) {
    const test::Variable variable("STRAIT_DATA", root);
    EXPECT_EQ(parse_config(manual_of_defaults(), "manual.toml"), parse_config("", "empty.toml"));
  }
}

TEST(Manual, HasEveryKeyOfEveryKindWithItsMeaningAndWhatItMayBe) {
  const auto lines = lines_by_key(manual_of_defaults());
  const auto kinds = all_kinds();
  ASSERT_FALSE(kinds.empty());
  for (const auto& kind : kinds) {
    for (const auto& entry : key_entries(kind.config)) {
      EXPECT_NE(entry.meaning, "") << entry.key;
      EXPECT_NE(entry.expected, "") << entry.key;
      ASSERT_TRUE(lines.contains(entry.key)) << entry.key;
      EXPECT_THAT(lines.at(entry.key), AllOf(HasSubstr(entry.meaning), HasSubstr("; " + entry.expected)));
    }
  }
}

TEST(Manual, KeysOfOtherKindsAreCommentedOutAndRightWhereTheyApply) {
  const std::string manual = manual_of_defaults();
  EXPECT_THAT(manual, ContainsRegex("\n# theta = 10000\\.0 .*; with model\\.kind = \"llama\"\n"));
  EXPECT_THAT(manual, ContainsRegex("\n# heads = 12 .*; with model\\.kind = \"gpt2\" or \"llama\"; 9 with "
                                    "model\\.kind = \"llama\"\n"));
  EXPECT_THAT(manual,
              ContainsRegex("\nwidth = 64 .*; 768 with model\\.kind = \"gpt2\": width of the embedding;"));
  EXPECT_THAT(manual,
              ContainsRegex(
                  "\noptimizer\\.lr = 0\\.01 .*; 5e-05 with train\\.optimizer\\.kind = \"adamw\"; 0\\.001 with "
                  "train\\.optimizer\\.kind = \"adam\"\n"));
  // In force they are the keys of these kinds.
  const std::vector<std::string> kinds = {"model.kind=gpt2",
                                          "model.width=768",
                                          "data.kind=text",
                                          "train.optimizer.kind=adamw",
                                          "train.schedule.kind=linear",
                                          "model.cuts=[\"h.2\"]"};
  const auto lines = lines_by_key(manual);
  std::string text;
  for (const auto& entry : key_entries(parse_config("", "kinds.toml", kinds))) {
    const size_t dot = entry.key.find('.');
    text += (dot == std::string::npos ? "" : entry.key.substr(0, dot + 1)) + lines.at(entry.key) + "\n";
  }
  const Config config = parse_config(text, "all.toml", kinds);
  EXPECT_EQ(config.model.settings.integer("heads"), 12);
  EXPECT_EQ(config.data.settings.integer("block"), 1024);
  EXPECT_EQ(config.train.optimizer.betas, (std::vector<double>{0.9, 0.999}));
}

TEST(Manual, OfAConfigurationReadsBackAsItAndNamesTheDefaults) {
  const std::vector<std::string> overrides = {"train.epochs=7",
                                              "compression.activations.codec=topk:0.1,values=fp16",
                                              "train.optimizer.kind=adamw", "name=mine"};
  const Config config = parse_config("", "empty.toml", overrides);
  const std::string manual = manual_of(config);
  EXPECT_EQ(parse_config(manual, "manual.toml"), config);
  EXPECT_THAT(manual, ContainsRegex("\nepochs = 7 +# .*; default 100\n"));
  EXPECT_THAT(manual,
              ContainsRegex("\nactivations\\.codec = \"topk:0\\.1,values=fp16\" +# .*; default \"none\"\n"));
  EXPECT_THAT(manual, ContainsRegex("\noptimizer\\.lr = 5e-05 +# [^\n]*a number > 0\n")) << "adamw's default";
  EXPECT_THAT(manual, AllOf(HasSubstr("optimizer.betas"), testing::Not(HasSubstr("momentum"))));
}

}  // namespace
}  // namespace strait
