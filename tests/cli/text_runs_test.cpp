#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>

#include "strait/transport/port.h"
#include "tests/cli/text_runs.h"
#include "tests/support/rank_processes.h"

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

TEST_F(TextRuns, ASubspaceIsTrainedScoredPlannedAndContinued) {
  std::vector<std::string> keys;
  for (const char* key : {"model.subspace=3", "model.bottleneck=2", "compression.reuse_indices=false",
                          "compression.activations.codec=none", "compression.gradients.codec=none"}) {
    keys.insert(keys.end(), {"--set", key});
  }
  const auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), keys.begin(), keys.end());
    return run(arguments);
  };
  const std::string weights = dir_ / "run" / "model.safetensors";
  const auto trained = train("run", keys);
  ASSERT_EQ(trained.status, 0) << trained.err;
  const std::string metrics = test::read_file(dir_ / "run" / "metrics.jsonl");
  const auto last = json::parse(metrics.substr(metrics.find('\n') + 1));
  std::map<std::string, json> boundaries;
  for (const auto& boundary : last["boundaries"]) boundaries[boundary["name"]] = boundary;
  ASSERT_EQ(boundaries.size(), 6U);
  const auto tokens = 16 * last["steps"].get<uint64_t>() * 4;  // of blocks of 16, batches of 4
  const auto payload = [&](const std::string& name, const char* direction) {
    const json& traffic = boundaries[name][direction];
    return traffic["wire_bytes"].get<uint64_t>() - 64 * traffic["messages"].get<uint64_t>();
  };
  for (const std::string cut : {"embed", "h.0", "h.1"}) {
    EXPECT_LE(payload(cut + ".input", "activations"), tokens * 2);
    EXPECT_EQ(payload(cut, "activations"), payload(cut + ".input", "activations") / 2 * 4 * 2)
        << "two channels";
    EXPECT_EQ(payload(cut, "gradients"), payload(cut, "activations"));
    EXPECT_EQ(payload(cut + ".input", "gradients"), 0U);
  }
  const auto scored = with({"eval", config_, "--weights", weights, "--json"});
  ASSERT_EQ(scored.status, 0) << scored.err;
  EXPECT_EQ(json::parse(scored.out)["off"]["loss"], last["test"]["off"]["loss"]);
  EXPECT_EQ(with({"eval", config_, "--weights", weights, "--json", "--set", "seed=9"}).out, scored.out)
      << "the subspace comes with the weights";
  const auto told =
      with({"generate", config_, "--weights", weights, "--prompt", "the cat", "--tokens", "5", "--json"});
  ASSERT_EQ(told.status, 0) << told.err;
  EXPECT_EQ(json::parse(told.out)["off"], json::parse(told.out)["on"]) << "nothing is lost on the wire";
  // The messages of a plan count the tokens, 2 bytes of each beside 8 of coordinates, in a frame of their own.
  for (const auto& flags : std::vector<std::vector<std::string>>{{}, {"--measured", dir_ / "run"}}) {
    std::vector<std::string> arguments = {"plan", config_, "--json"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const auto planned = with(arguments);
    ASSERT_EQ(planned.status, 0) << planned.err;
    const json costs = json::parse(planned.out)["measurement"]["codecs"][0];
    ASSERT_EQ(costs["activations"].size(), 3U);
    for (size_t i = 0; i < 3; ++i) {
      const auto gradient = costs["gradients"][i]["bytes"].get<double>();
      EXPECT_GT(gradient, 64);
      EXPECT_NEAR(costs["activations"][i]["bytes"].get<double>(), gradient + 64 + (gradient - 64) / 4, 1e-6);
    }
  }
}

TEST_F(TextRuns, MachinesWithOtherInitialWeightsAreNamed) {
  test::RankProcesses all(STRAIT_PROGRAM, 2, free_port());
  for (const int rank : {0, 1}) {
    const auto machine = dir_ / std::to_string(rank);
    ASSERT_EQ(train(std::to_string(rank), {"--set", "seed=" + std::to_string(rank)}).status, 0);
    all.start(rank, on_texts({"train", config_, "--out", dir_ / "run", "--set", "data.root=" + machine.string(),
                              "--set", "model.init=model.safetensors", "--set", "model.cuts=[\"h.0\"]"}));
  }
  for (const auto& [rank, result] : all.wait(std::chrono::seconds(40))) {
    EXPECT_EQ(result.status, 2) << rank;
    EXPECT_THAT(result.err, HasSubstr("strait: model.init: what rank 1 has is not what rank 0 has: "));
  }
  EXPECT_FALSE(std::filesystem::exists(dir_ / "run/config.toml"));
}

TEST_F(TextRuns, GenerateRefusesWhatItCannotUse) {
  ASSERT_EQ(train("run").status, 0);
  EXPECT_EQ(generate({"--prompt", "a", "--tokens", "0"}).status, 2);
  for (const char* wrong : {"-1", "nan", "-nan", "inf", "1e7"}) {
    const auto result = generate({"--prompt", "a", "--temperature", wrong});
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.err,
              fmt::format("strait: --temperature: expected a number from 0 to 1e+06, found \"{}\"\n", wrong));
  }
  const auto small = generate({"--prompt", "a", "--set", "model.width=16"});
  EXPECT_EQ(small.status, 2);
  EXPECT_THAT(small.err, HasSubstr("config.json: n_embd: expected model.width = 8, found 16"));
  const auto none = run({"generate", config_, "--prompt", "a"});
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.err, HasSubstr("--weights: expected a file, since model.init names none"));
  const auto vocab = train("bad", {"--set", "model.vocab=10"});
  EXPECT_EQ(vocab.status, 2);
  EXPECT_THAT(vocab.err, HasSubstr("model.vocab: expected at least"));
}

}  // namespace
}  // namespace strait
