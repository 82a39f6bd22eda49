#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/text_runs.h"

namespace strait {
namespace {

using nlohmann::json;
using test::TextRuns;
using testing::HasSubstr;

TEST_F(TextRuns, TrainingEvaluationAndGenerationAgree) {
  const auto trained = train("run");
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("perplexity"));
  const std::string metrics = test::read_file(dir_ / "run" / "metrics.jsonl");
  const auto last = json::parse(metrics.substr(metrics.find('\n') + 1));

  const auto scored = run({"eval", config_, "--weights", dir_ / "run" / "model.safetensors", "--json"});
  ASSERT_EQ(scored.status, 0) << scored.err;
  const auto scores = json::parse(scored.out);
  for (const char* side : {"off", "on"}) {
    EXPECT_EQ(scores[side]["loss"], last["test"][side]["loss"]);
    EXPECT_EQ(scores[side]["perplexity"], last["test"][side]["perplexity"]);
  }
  EXPECT_NE(scores["off"]["loss"], scores["on"]["loss"]);

  const auto told = generate({"--prompt", "the cat", "--tokens", "20", "--seed", "3", "--json"});
  ASSERT_EQ(told.status, 0) << told.err;
  const auto texts = json::parse(told.out);
  EXPECT_EQ(texts["prompt"], "the cat");
  EXPECT_NE(texts["off"], texts["on"]);
  EXPECT_EQ(generate({"--prompt", "the cat", "--tokens", "20", "--seed", "3", "--json"}).out, told.out);
  const auto plain = generate({"--prompt", "the cat", "--tokens", "20", "--seed", "3", "--compression", "off"});
  EXPECT_THAT(plain.out, HasSubstr("compression off:\nthe cat"));
  EXPECT_THAT(plain.out, testing::Not(HasSubstr("compression on")));
}

TEST_F(TextRuns, GenerateRefusesWhatItCannotUse) {
  ASSERT_EQ(train("run").status, 0);
  EXPECT_EQ(generate({"--prompt", "a", "--tokens", "0"}).status, 2);
  EXPECT_EQ(generate({"--prompt", "a", "--temperature", "-1"}).status, 2);
  const auto small = generate({"--prompt", "a", "--set", "model.width=16"});
  EXPECT_EQ(small.status, 2);
  EXPECT_THAT(small.err, HasSubstr("wte.weight"));
  const auto none = run({"generate", config_, "--prompt", "a"});
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.err, HasSubstr("--weights: expected a file, since model.init names none"));
  const auto vocab = train("bad", {"--set", "model.vocab=10"});
  EXPECT_EQ(vocab.status, 2);
  EXPECT_THAT(vocab.err, HasSubstr("model.vocab: expected at least"));
}

}  // namespace
}  // namespace strait
