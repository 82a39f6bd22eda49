#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "strait/codecs/codec.h"
#include "strait/config/config.h"
#include "strait/experiment/sweep.h"
#include "strait/models/kinds.h"

namespace strait {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSmallSeeds = 5;  ///< of the pictures' tables in the small protocol
constexpr size_t kTextSeeds = 3;   ///< of Table 5 there

/// The runs of a table by variant, each checked to differ from the protocol in compression, seed and how often
/// it is scored only.
std::map<std::string, SweepRun> rows(const std::string& folder, int table, size_t seeds) {
  const Config base =
      load_config(fs::path("experiments") / folder / (table == 5 ? "gpt2.toml" : "resnet18.toml"));
  const auto name = fmt::format("table{}", table);
  const auto sweep = load_sweep(fs::path("experiments") / folder / (name + ".toml"));
  EXPECT_EQ(sweep.name, name);
  EXPECT_TRUE(sweep.title.starts_with(fmt::format("Table {}: ", table))) << sweep.title;
  std::map<std::string, SweepRun> found;
  std::map<std::string, size_t> runs;
  for (const auto& run : sweep.runs) {
    Config rest = run.config;
    EXPECT_EQ(rest.seed, runs[run.variant]++) << run.config.name;
    rest.name = base.name;
    rest.seed = base.seed;
    rest.compression = base.compression;
    rest.train.evaluate_epochs = base.train.evaluate_epochs;
    if (table == 5 && folder == "small")
      rest.train.optimizer.lr = base.train.optimizer.lr;  // each row has its own
    EXPECT_EQ(rest, base) << run.config.name;
    found.emplace(run.variant, run);
  }
  for (const auto& [variant, count] : runs) EXPECT_EQ(count, seeds) << variant;
  return found;
}

/// What a row of the paper must be: the two directions as codec and feedback, the warm-up as a share of all
/// epochs, the published accuracies.
struct Row {
  std::string name;
  std::string activations;
  std::string gradients;
  int warm_percent;
  double off;
  double on;
};

void expect_table(int table, size_t paper_seeds, const std::vector<Row>& expected) {
  for (const std::string folder : {"paper", "small"}) {
    const auto found = rows(folder, table, folder == "paper" ? paper_seeds : kSmallSeeds);
    EXPECT_EQ(found.size(), expected.size());
    for (const auto& row : expected) {
      ASSERT_TRUE(found.contains(row.name)) << row.name;
      const auto& config = found.at(row.name).config;
      const auto& paper = found.at(row.name).paper;
      const auto text = [](const LinkOptions& options) { return options.codec + " " + options.feedback; };
      EXPECT_EQ(text(config.compression.activations), row.activations) << row.name;
      EXPECT_EQ(text(config.compression.gradients), row.gradients) << row.name;
      const double warm = row.warm_percent * config.train.epochs / 100.0;
      EXPECT_EQ(config.compression.start_epoch, warm == 0 ? 0 : std::max(1.0, std::floor(warm))) << row.name;
      ASSERT_TRUE(paper.has_value()) << row.name;
      EXPECT_EQ(paper->off, row.off) << row.name;
      EXPECT_EQ(paper->on, row.on) << row.name;
    }
  }
}

TEST(Experiments, Table1IsThePapers) {
  expect_table(1, 5,
               {{"none", "none none", "none none", 0, 93.00, 93.00},
                {"fw4-bw8", "quant:4 none", "quant:8 none", 0, 93.10, 92.95},
                {"fw4-bw6", "quant:4 none", "quant:6 none", 0, 91.93, 91.76},
                {"fw4-bw4", "quant:4 none", "quant:4 none", 0, 83.39, 82.66},
                {"fw4-bw2", "quant:4 none", "quant:2 none", 0, 65.11, 64.27},
                {"fw2-bw8", "quant:2 none", "quant:8 none", 0, 77.09, 92.05},
                {"fw2-bw6", "quant:2 none", "quant:6 none", 0, 84.87, 91.59},
                {"fw2-bw4", "quant:2 none", "quant:4 none", 0, 81.32, 83.92}});
}

TEST(Experiments, Table2IsThePapers) {
  expect_table(2, 5,
               {{"none", "none none", "none none", 0, 93.00, 93.00},
                {"topk-50", "topk:0.5 none", "topk:0.5 none", 0, 93.16, 93.38},
                {"topk-30", "topk:0.3 none", "topk:0.3 none", 0, 91.26, 93.06},
                {"topk-20", "topk:0.2 none", "topk:0.2 none", 0, 86.74, 92.73},
                {"topk-10", "topk:0.1 none", "topk:0.1 none", 0, 75.89, 91.87},
                {"topk-5", "topk:0.05 none", "topk:0.05 none", 0, 55.09, 90.01},
                {"topk-2", "topk:0.02 none", "topk:0.02 none", 0, 49.95, 85.52}});
}

TEST(Experiments, Table3IsThePapers) {
  expect_table(3, 1,
               {{"none", "none none", "none none", 0, 93.00, 93.00},
                {"ef-topk-10-warm-20", "topk:0.1 ef", "topk:0.1 ef", 20, 91.02, 89.85},
                {"ef-mixed-topk-10-warm-20", "topk:0.1 ef-mixed", "topk:0.1 ef-mixed", 20, 61.37, 90.97},
                {"ef21-topk-5", "topk:0.05 ef21", "topk:0.05 ef21", 0, 89.37, 89.29},
                {"ef21-topk-10", "topk:0.1 ef21", "topk:0.1 ef21", 0, 90.83, 91.19},
                {"ef21-topk-10-warm-20", "topk:0.1 ef21", "topk:0.1 ef21", 20, 90.71, 91.77}});
}

TEST(Experiments, Table4IsThePapers) {
  expect_table(4, 1,
               {{"none", "none none", "none none", 10, 93.00, 93.00},
                {"aq-sgd-topk-50", "topk:0.5 aq-sgd", "topk:0.5 none", 10, 92.44, 92.54},
                {"aq-sgd-topk-30", "topk:0.3 aq-sgd", "topk:0.3 none", 10, 91.86, 91.61},
                {"aq-sgd-topk-20", "topk:0.2 aq-sgd", "topk:0.2 none", 10, 90.82, 87.80},
                {"aq-sgd-topk-10", "topk:0.1 aq-sgd", "topk:0.1 none", 10, 85.91, 84.16}});
}

/// A run with a warm-up of 10 epochs compresses in epoch 10.
TEST(Experiments, TheWarmUpOfTable4FillsTheBuffers) {
  for (const std::string folder : {"paper", "small"}) {
    for (const auto& [name, run] : rows(folder, 4, folder == "paper" ? 1 : kSmallSeeds)) {
      EXPECT_EQ(run.config.compression.store.fill, "warmup") << folder << " " << name;
      EXPECT_EQ(run.config.compression.start_from, "") << folder << " " << name;
    }
  }
}

TEST(Experiments, Table5IsThePapers) {
  const std::map<std::string, std::pair<std::string, double>> expected = {
      {"none", {"none", 21.01}},        {"topk-50", {"topk:0.5", 22.38}},
      {"topk-30", {"topk:0.3", 26.28}}, {"topk-20", {"topk:0.2", 33.32}},
      {"topk-10", {"topk:0.1", 74.51}}, {"topk-10-separate", {"topk:0.1", 2990.16}}};
  for (const std::string folder : {"paper", "small"}) {
    const auto found = rows(folder, 5, folder == "paper" ? 1 : kTextSeeds);
    EXPECT_EQ(found.size(), expected.size());
    for (const auto& [name, row] : expected) {
      ASSERT_TRUE(found.contains(name)) << name;
      const auto& config = found.at(name).config;
      const auto& paper = found.at(name).paper;
      EXPECT_EQ(config.compression.activations, (LinkOptions{row.first, "none"})) << name;
      EXPECT_EQ(config.compression.gradients, (LinkOptions{row.first, "none"})) << name;
      EXPECT_EQ(config.compression.reuse_indices, name != "none" && name != "topk-10-separate") << name;
      ASSERT_TRUE(paper.has_value()) << name;
      EXPECT_FALSE(paper->off.has_value()) << name;
      EXPECT_EQ(paper->on, row.second) << name;
    }
  }
}

TEST(Experiments, TheSingleRunIsARowOfItsTable) {
  const Config single = load_config("experiments/small/topk-10.toml");
  Config row = rows("small", 2, kSmallSeeds).at("topk-10").config;
  row.name = single.name;                                    // the row's has its seed
  row.train.evaluate_epochs = single.train.evaluate_epochs;  // a table needs the last epoch's alone
  EXPECT_EQ(single, row);
}

TEST(Experiments, FollowTheProtocols) {
  Config paper;  // the defaults are the paper's
  paper.name = "resnet18";
  paper.data.root = default_data_root();
  EXPECT_EQ(load_config("experiments/paper/resnet18.toml"), paper);

  Config small = paper;
  small.name = "resnet18-small";
  small.model.settings.set("width", 16);
  small.data.train_limit = 10000;
  small.train.epochs = 6;
  small.train.optimizer.lr = 0.05;
  small.train.schedule.t_max = 6;  // annealed, which the paper's is not
  small.compression.diagnostics = 25;
  EXPECT_EQ(load_config("experiments/small/resnet18.toml"), small);
}

TEST(Experiments, TheOpenQuestionsAreAskedInTheSmallProtocolWithFiveSeeds) {
  const Config base = load_config("experiments/small/resnet18.toml");
  std::set<std::string> asked;
  for (const auto& file : fs::directory_iterator("experiments/findings")) {
    asked.insert(file.path().stem());
    if (file.path().stem().string().starts_with("longer") || file.path().stem() == "recipes_text") continue;
    std::map<std::string, std::set<uint64_t>> seeds;
    for (const auto& run : load_sweep(file.path()).runs) {
      EXPECT_EQ(run.config.model, base.model) << run.config.name;
      EXPECT_EQ(run.config.train.epochs, base.train.epochs) << run.config.name;
      EXPECT_EQ(run.config.train.schedule, base.train.schedule) << run.config.name;
      EXPECT_EQ(run.config.compression.diagnostics, base.compression.diagnostics) << run.config.name;
      seeds[run.variant].insert(run.config.seed);
    }
    for (const auto& [variant, of] : seeds) EXPECT_EQ(of.size(), kSmallSeeds) << file << " " << variant;
  }
  for (const char* question : {"direction", "slots", "places", "topk", "aq_sgd", "recipes"})
    EXPECT_TRUE(asked.contains(question)) << question;
}

TEST(Experiments, WhatToUseForTextIsAskedAtThreeRatesWithThreeSeeds) {
  const Config base = load_config("experiments/small/gpt2.toml");
  std::map<std::string, std::set<std::pair<double, uint64_t>>> points;
  for (const auto& run : load_sweep("experiments/findings/recipes_text.toml").runs) {
    EXPECT_EQ(run.config.model, base.model) << run.config.name;
    EXPECT_EQ(run.config.data, base.data) << run.config.name;
    EXPECT_EQ(run.config.train.schedule, base.train.schedule) << run.config.name;
    const double rate = run.config.train.optimizer.lr;
    points[run.variant.substr(0, run.variant.find("-lr-"))].emplace(rate, run.config.seed);
  }
  for (const auto& [row, of] : points) EXPECT_EQ(of.size(), 9U) << row;
  EXPECT_TRUE(points.contains("none"));
}

TEST(Experiments, RowsThatCarryAClaimAreTrainedForLonger) {
  const Config base = load_config("experiments/small/resnet18.toml");
  const Sweep longer = load_sweep("experiments/findings/longer.toml");
  std::map<std::string, Config> variants;
  for (const auto& run : longer.runs) variants.emplace(run.variant, run.config);
  for (const auto& run : load_sweep("experiments/findings/longer_cuda.toml").runs) {
    Config expected = variants.at(run.variant);
    expected.name = run.config.name;
    expected.seed = run.config.seed;
    expected.train.device = "cuda";
    EXPECT_EQ(run.config, expected) << run.config.name;
  }
  for (const auto& run : longer.runs) {
    EXPECT_EQ(run.config.model.settings.integer("width"), 32) << run.config.name;
    EXPECT_EQ(run.config.data.train_limit, 20000) << run.config.name;
    EXPECT_EQ(run.config.train.epochs, 15) << run.config.name;
    EXPECT_EQ(run.config.train.schedule.t_max, 15) << run.config.name;
    EXPECT_EQ(run.config.train.optimizer, base.train.optimizer) << run.config.name;
  }
}

TEST(Experiments, TextFollowsTheProtocols) {
  const Config paper = load_config("experiments/paper/gpt2.toml");
  Config expected = parse_config(R"(name = "gpt2"
model = { kind = "gpt2", init = "gpt2/model.safetensors" }
data = { kind = "wikitext2" }
train = { epochs = 4, optimizer.kind = "adamw", schedule = { kind = "linear" }, clip_norm = 1.0 }
)",
                                 "expected");
  EXPECT_EQ(paper, expected);

  const Config small = load_config("experiments/small/gpt2.toml");
  const Config first = load_config("experiments/small/gpt2-pretrain.toml");
  EXPECT_EQ(initial_file(first.model), "");
  EXPECT_EQ(initial_file(small.model), "runs/gpt2-pretrain/model.safetensors");
  EXPECT_EQ(first.data.settings.numbers("train_range").back(),
            small.data.settings.numbers("train_range").front());  // nothing is learnt twice
  EXPECT_EQ(first.compression, small.compression);
}

TEST(Experiments, SubspacesAndBottlenecksDifferInNothingElse) {
  const auto sweep = load_sweep("experiments/small/subspace.toml");
  std::map<std::string, std::pair<int64_t, int64_t>> keys;
  for (const auto& run : sweep.runs) {
    Config config = run.config;
    const Settings& settings = config.model.settings;
    keys[run.variant] = {settings.integer("bottleneck"), settings.integer("subspace")};
    config.model.settings.set("bottleneck", 0);
    config.model.settings.set("subspace", 0);
    config.name = sweep.runs.front().config.name;
    EXPECT_EQ(config, sweep.runs.front().config) << run.variant;
    EXPECT_FALSE(compresses_activations(config.compression, config.model.cuts)) << run.variant;
  }
  const std::map<std::string, std::pair<int64_t, int64_t>> expected = {
      {"none", {0, 0}},         {"bottleneck-32", {32, 0}}, {"bottleneck-8", {8, 0}},
      {"subspace-32", {0, 32}}, {"subspace-16", {0, 16}},   {"subspace-8", {0, 8}}};
  EXPECT_EQ(keys, expected);
}

TEST(Experiments, EveryCodecIsComparedAndNothingElseDiffers) {
  std::set<std::string> compared;
  std::map<std::string, std::set<double>> rates;
  for (const char* file : {"experiments/small/operators.toml", "experiments/small/operators_text.toml"}) {
    const auto sweep = load_sweep(file);
    std::set<uint64_t> seeds;
    for (const auto& run : sweep.runs) {
      Config config = run.config;
      for (LinkOptions* link : {&config.compression.activations, &config.compression.gradients}) {
        compared.insert(link->codec.substr(0, link->codec.find_first_of(":,")));
        *link = {};
      }
      config.name = sweep.runs.front().config.name;
      rates[file].insert(
          std::exchange(config.train.optimizer.lr, sweep.runs.front().config.train.optimizer.lr));
      seeds.insert(std::exchange(config.seed, 0));
      EXPECT_EQ(config, sweep.runs.front().config) << run.variant;
    }
    EXPECT_THAT(seeds, testing::IsSupersetOf({0, 1, 2})) << file;
  }
  EXPECT_EQ(rates["experiments/small/operators.toml"].size(), 1U);
  EXPECT_EQ(rates["experiments/small/operators_text.toml"], (std::set<double>{3e-4, 1e-3, 3e-3}));
  for (const auto& codec : codec_list()) {
    const bool is_plain_cast = codec.name == "fp16" || codec.name == "bf16";
    EXPECT_EQ(compared.contains(std::string(codec.name)), !is_plain_cast) << codec.name;
  }
}

TEST(Experiments, TheDemoComparesFourSchemesOnDrawnPictures) {
  const auto sweep = load_sweep("experiments/demo.toml");
  std::set<std::string> names;
  for (const auto& run : sweep.runs) {
    names.insert(run.variant);
    EXPECT_EQ(run.config.data.kind, "shapes");
  }
  EXPECT_EQ(names, (std::set<std::string>{"none", "fw4-bw8", "fw2-bw8", "topk-10"}));
}

}  // namespace
}  // namespace strait
