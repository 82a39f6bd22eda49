#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "fuzz/tokenizer_input.h"
#include "tests/support/process.h"
#include "tests/support/run_files.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// A GPT-2 of two narrow blocks on a text of its own.
class TextRuns : public testing::Test {
 protected:
  static constexpr const char* kConfig = R"(name = "text"
[model]
kind = "gpt2"
layers = 2
heads = 2
width = 8
context = 16
vocab = 287
cuts = ["embed", "h.0", "h.1"]
[data]
kind = "text"
block = 16
batch_size = 4
[train]
epochs = 2
threads = 1
clip_norm = 1.0
optimizer = { kind = "adamw", lr = 1e-2 }
schedule = { kind = "linear", warmup_steps = 2 }
[pipeline]
micro_batches = 2
[compression]
activations = { codec = "topk:0.2" }
gradients = { codec = "topk:0.2" }
reuse_indices = true
)";

  TextRuns() {
    std::filesystem::create_directories(dir_ / "tokenizer");
    for (const auto& file : fuzz::small_tokenizer(fuzz::sample_merges())) {
      test::write_file(dir_ / "tokenizer" / file.name, file.text);
    }
    std::string text;
    for (int i = 0; i < 40; ++i) text += "the cat in the hat sat on the mat, " + std::to_string(i * i) + "\n";
    test::write_file(dir_ / "train.txt", text);
    test::write_file(dir_ / "test.txt", text.substr(0, 400));
    test::write_file(config_, kConfig);
  }

  test::ProcessResult run(std::vector<std::string> arguments) const {
    const std::vector<std::pair<std::string, std::string>> places = {{"data.tokenizer", dir_ / "tokenizer"},
                                                                     {"data.train_file", dir_ / "train.txt"},
                                                                     {"data.test_file", dir_ / "test.txt"}};
    for (const auto& [key, path] : places) {
      arguments.insert(arguments.end(), {"--set", key + "=\"" + path + "\""});
    }
    return test::run_process(STRAIT_PROGRAM, arguments);
  }

  test::ProcessResult train(const std::string& out, std::vector<std::string> flags = {}) const {
    flags.insert(flags.begin(), {"train", config_, "--out", dir_ / out});
    return run(flags);
  }

  test::ProcessResult generate(std::vector<std::string> flags) const {
    flags.insert(flags.begin(), {"generate", config_, "--weights", dir_ / "run" / "model.safetensors"});
    return run(flags);
  }

  test::TempDir dir_;
  std::string config_ = dir_ / "text.toml";
};

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

TEST_F(TextRuns, FourProcessesGiveTheBitsOfOne) {
  ASSERT_EQ(train("one").status, 0);
  const auto four = run({"launch", "-n", "4", "--", "train", config_, "--out", dir_ / "four"});
  ASSERT_EQ(four.status, 0) << four.err;
  EXPECT_EQ(test::read_file(dir_ / "one" / "model.safetensors"),
            test::read_file(dir_ / "four" / "model.safetensors"));
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
