#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "strait/experiment/config.h"
#include "strait/experiment/sweep.h"

namespace strait {
namespace {

namespace fs = std::filesystem;

const std::set<std::string> kRows = {"none",    "fw4-bw8", "fw4-bw6", "fw4-bw4", "fw4-bw2",
                                     "fw2-bw8", "fw2-bw6", "fw2-bw4", "topk-50", "topk-30",
                                     "topk-20", "topk-10", "topk-5",  "topk-2"};

/// The configurations of a folder by the names of their files.
std::map<std::string, Config> configs_in(const fs::path& folder) {
  std::map<std::string, Config> configs;
  for (const auto& entry : fs::directory_iterator(folder)) {
    configs.emplace(entry.path().stem().string(), load_config(entry.path()));
  }
  return configs;
}

class Rows : public testing::TestWithParam<const char*> {};

TEST_P(Rows, DifferFromTheirBaseInNameAndCompressionOnly) {
  auto configs = configs_in(fs::path("experiments") / GetParam());
  const Config base = configs.at("resnet18");
  std::set<std::string> names;
  std::set<std::string> hashes;
  for (auto& [file, config] : configs) {
    if (file == "resnet18") continue;
    EXPECT_EQ(config.name, file);
    names.insert(config.name);
    hashes.insert(config_hash(config));
    config.name = base.name;
    config.compression = base.compression;
    EXPECT_EQ(config, base) << file;
  }
  EXPECT_EQ(names, kRows);
  EXPECT_EQ(hashes.size(), kRows.size());
}

INSTANTIATE_TEST_SUITE_P(Experiments, Rows, testing::Values("paper", "small"));

TEST(Experiments, CompressAsTheirNamesSay) {
  const auto expect = [](const std::string& name, const std::string& activations,
                         const std::string& gradients) {
    for (const char* folder : {"paper", "small"}) {
      const auto config = load_config(fs::path("experiments") / folder / (name + ".toml")).compression;
      EXPECT_EQ(config.activations.codec, activations) << name;
      EXPECT_EQ(config.gradients.codec, gradients) << name;
    }
  };
  expect("none", "none", "none");
  for (const char* row : {"fw4-bw8", "fw4-bw6", "fw4-bw4", "fw4-bw2", "fw2-bw8", "fw2-bw6", "fw2-bw4"}) {
    expect(row, std::string("quant:") + row[2], std::string("quant:") + row[6]);
  }
  for (const auto& [row, spec] : {std::pair{"topk-50", "topk:0.5"},
                                  {"topk-30", "topk:0.3"},
                                  {"topk-20", "topk:0.2"},
                                  {"topk-10", "topk:0.1"},
                                  {"topk-5", "topk:0.05"},
                                  {"topk-2", "topk:0.02"}}) {
    expect(row, spec, spec);
  }
}

TEST(Experiments, FollowTheProtocols) {
  Config paper;  // the defaults are the paper's
  paper.name = "resnet18";
  paper.data.root = default_data_root();
  EXPECT_EQ(load_config("experiments/paper/resnet18.toml"), paper);

  Config small = paper;
  small.name = "resnet18-small";
  small.model.width = 16;
  small.data.train_limit = 10000;
  small.train.epochs = 6;
  small.train.optimizer.lr = 0.05;
  EXPECT_EQ(load_config("experiments/small/resnet18.toml"), small);
}

TEST(Experiments, TheDemoComparesFourSchemesOnDrawnPictures) {
  const auto sweep = load_sweep("experiments/demo.toml");
  std::set<std::string> names;
  for (const auto& run : sweep.runs) {
    names.insert(run.name);
    EXPECT_EQ(run.data.kind, "shapes");
  }
  EXPECT_EQ(names, (std::set<std::string>{"none", "fw4-bw8", "fw2-bw8", "topk-10"}));
}

}  // namespace
}  // namespace strait
