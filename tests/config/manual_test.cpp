#include "strait/config/manual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strait/base/text.h"
#include "strait/config/kinds.h"
#include "tests/support/variable.h"

namespace strait {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

/// The same text with the keys that are commented out in force, and the kinds that they need.
std::string with_all_keys(const std::string& manual) {
  std::string text;
  for (std::string line : split(manual, '\n')) {
    if (line.starts_with("# ")) line.erase(0, 2);
    text += line + "\n";
  }
  return text;
}

TEST(Manual, OfTheDefaultsReadsBackAsTheDefaults) {
  for (const char* root : {static_cast<const char*>(nullptr), "/from/environment"}) {
    const test::Variable variable("STRAIT_DATA", root);
    EXPECT_EQ(parse_config(manual_of_defaults(), "manual.toml"), parse_config("", "empty.toml"));
  }
}

TEST(Manual, HasEveryKeyOfEveryKindWithItsMeaningAndWhatItMayBe) {
  const std::string manual = manual_of_defaults();
  auto kinds = all_kinds();
  ASSERT_FALSE(kinds.empty());
  for (const auto& kind : kinds) {
    for (const auto& entry : key_entries(kind.config)) {
      EXPECT_NE(entry.meaning, "") << entry.key;
      EXPECT_NE(entry.expected, "") << entry.key;
      EXPECT_THAT(manual, HasSubstr(" # " + entry.meaning + "; " + entry.expected)) << entry.key;
    }
  }
}

TEST(Manual, KeysOfOtherKindsAreCommentedOutAndRightWhereTheyApply) {
  const std::string manual = manual_of_defaults();
  EXPECT_THAT(manual, ContainsRegex("\n# layers = 12 .*; with model\\.kind = \"gpt2\"\n"));
  EXPECT_THAT(manual, ContainsRegex("\nwidth = 64 .*; 768 with model\\.kind = \"gpt2\"\n"));
  EXPECT_THAT(manual,
              ContainsRegex(
                  "\noptimizer\\.lr = 0\\.01 .*; 5e-05 with train\\.optimizer\\.kind = \"adamw\"; 0\\.001 with "
                  "train\\.optimizer\\.kind = \"adam\"\n"));
  // In force they are the keys of these kinds, each once and in its table. What sgd and cosine alone have goes.
  const std::vector<std::string> kinds = {"model.kind=gpt2",
                                          "model.width=768",
                                          "data.kind=text",
                                          "train.optimizer.kind=adamw",
                                          "train.schedule.kind=linear",
                                          "model.cuts=[\"h.2\"]"};
  std::string text;
  for (const auto& line : split(with_all_keys(manual), '\n')) {
    const bool other = line.starts_with("optimizer.momentum") || line.starts_with("schedule.t_max");
    if (!other) text += line + "\n";
  }
  const Config config = parse_config(text, "all.toml", kinds);
  EXPECT_EQ(config.model.layers, 12);
  EXPECT_EQ(config.data.block, 1024);
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
