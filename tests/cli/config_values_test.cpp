// What a report takes for the same configuration, against the configurations themselves.

#include "strait/report/config_values.h"

#include <gtest/gtest.h>

#include "strait/config/config.h"
#include "strait/data/kinds.h"

namespace strait {
namespace {

Config with(const std::vector<std::string>& overrides) { return parse_config("", "empty.toml", overrides); }

void expect_same_verdict(const std::vector<std::string>& before, const std::vector<std::string>& changes) {
  const Config base = with(before);
  for (const auto& change : changes) {
    auto overrides = before;
    overrides.push_back(change);
    const Config other = with(overrides);
    EXPECT_EQ(report::deciding_values(to_toml(base)) == report::deciding_values(to_toml(other)),
              config_hash(base) == config_hash(other))
        << change;
  }
}

constexpr const char* kNetworks = R"(networks=[{name="home",bandwidth="1Mbps"}])";

TEST(DecidingValues, AreThoseOfTheHash) {
  expect_same_verdict(
      {}, {"name=other", "data.root=/x", "pipeline.timeout=30s", "pipeline.connections=2",
           "pipeline.rejoin=10m", "pipeline.link=1Mbps", kNetworks, "checkpoint.keep=2",
           "checkpoint.every_steps=7", "compression.store.folder=/x", "compression.store.place=file",
           "train.threads=1", "train.epochs=3", "model.width=4", "pipeline.micro_batches=2"});
  expect_same_verdict({"model.kind=gpt2", "data.kind=text", "model.cuts=[\"h.0\"]"},
                      {"data.tokenizer=/x", "data.train_file=/x", "data.test_file=/x", "data.batch_size=3"});
  expect_same_verdict({"compression.activations.codec=auto"}, {"pipeline.link=1Mbps", "pipeline.rejoin=10m"});
}

TEST(DecidingValues, AreWithoutThePathsOfEveryKindOfData) {
  for (const auto& kind : data_kinds()) {
    Config base;
    base.data = DataOptions(kind.name);
    for (const auto& key : kind.keys) {
      if (!key.is_place) continue;
      Config other = base;
      other.data.settings.set(key.name, std::string("/elsewhere"));
      EXPECT_EQ(config_hash(base), config_hash(other)) << kind.name << " " << key.name;
      EXPECT_EQ(report::deciding_values(to_toml(base)), report::deciding_values(to_toml(other)))
          << kind.name << " " << key.name;
    }
  }
}

TEST(DecidingValues, AreWithoutTheSeed) {
  EXPECT_EQ(report::deciding_values(to_toml(with({"seed=1"}))),
            report::deciding_values(to_toml(with({"seed=2"}))));
  EXPECT_FALSE(report::deciding_values(to_toml(with({}))).empty());
  EXPECT_TRUE(report::deciding_values("no configuration").empty());
}

}  // namespace
}  // namespace strait
