#include "strait/config/config.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "strait/base/error.h"
#include "strait/base/text.h"
#include "tests/support/temp_dir.h"
#include "tests/support/variable.h"

namespace strait {
namespace {

/// The first configuration of the manual, every value different from its default where it can be.
constexpr const char* kManual = R"(
name = "fw4-bw8"
seed = 3

[model]
kind = "resnet18"                 # resnet18 | gpt2
width = 32
bottleneck = 8
cuts = ["layer1", "layer3"]

[data]
kind = "shapes"
root = "elsewhere"
train_limit = 10000
test_limit = 500
batch_size = 50
augment = true

[train]
epochs = 7
optimizer = { kind = "sgd", lr = 0.1, momentum = 0.8, weight_decay = 1e-4 }
schedule  = { kind = "constant", t_max = 14 }
accumulate = 2
clip_norm = 0.5
precision = "bf16"
log_every = 20
evaluate_every = 40
evaluate_epochs = 3
device = "cpu"
threads = 2

[pipeline]
schedule = "interleaved"
micro_batches = 5
stages_per_rank = 3
replicas = 2
timeout = "90s"
transport = "tcp"
connections = 4
rejoin = "10m"
link = "200Mbps,50ms"

[compression]
activations = { codec = "quant:4", feedback = "none" }
gradients   = { codec = "quant:8", feedback = "none" }
replicas    = { codec = "topk:0.01", feedback = "ef21" }
boundaries = [{ name = "layer3", activations = { codec = "quant:8" } },
              { name = "layer1", activations = { feedback = "aq-sgd" }, gradients = { codec = "fp16", feedback = "ef21" } }]
auto = { ladder = ["none", "quant:8"], budget = 0.02, every_steps = 50 }
reuse_indices = false
store = { place = "file", format = "bf16", folder = "/tmp" }
start_epoch = 2
end_epoch = 6
start_from = "runs/warm-up"
start_from_optimizer = false
evaluation = "frozen"
diagnostics = 10

[checkpoint]
every_epochs = 2
every_steps = 50
keep = 3
keep_epochs = [2, 20]
)";

Config manual() {
  Config config;
  config.name = "fw4-bw8";
  config.seed = 3;
  config.model = ModelOptions("resnet18", {{"width", 32}, {"bottleneck", 8}});
  config.model.cuts = {"layer1", "layer3"};
  config.data = DataOptions("shapes");
  config.data.root = "elsewhere";
  config.data.train_limit = 10000;
  config.data.test_limit = 500;
  config.data.batch_size = 50;
  config.train = {.epochs = 7,
                  .optimizer = {.lr = 0.1, .momentum = 0.8, .weight_decay = 1e-4},
                  .schedule = {"constant", 14},
                  .accumulate = 2,
                  .clip_norm = 0.5,
                  .precision = "bf16",
                  .log_every = 20,
                  .evaluate_every = 40,
                  .evaluate_epochs = 3,
                  .device = "cpu",
                  .threads = 2};
  config.pipeline = {.schedule = "interleaved",
                     .micro_batches = 5,
                     .stages_per_rank = 3,
                     .replicas = 2,
                     .timeout = "90s",
                     .transport = "tcp",
                     .connections = 4,
                     .rejoin = "10m",
                     .link = "200Mbps,50ms"};
  config.compression.activations.codec = "quant:4";
  config.compression.gradients.codec = "quant:8";
  config.compression.replicas = {"topk:0.01", "ef21"};
  config.compression.boundaries = {{"layer3", {.codec = "quant:8", .feedback = {}}, {}},
                                   {"layer1", {.codec = {}, .feedback = "aq-sgd"}, {"fp16", "ef21"}}};
  config.compression.automatic = {{"none", "quant:8"}, 0.02, "", 50};
  config.compression.store = {"file", "bf16", "/tmp"};
  config.compression.start_epoch = 2;
  config.compression.end_epoch = 6;
  config.compression.start_from = "runs/warm-up";
  config.compression.start_from_optimizer = false;
  config.compression.evaluation = "frozen";
  config.compression.diagnostics = 10;
  config.checkpoint = {2, 50, 3, {2, 20}};
  return config;
}

/// Text, with every key that its kinds have.
constexpr const char* kText = R"(
[[networks]]
name = "home"
bandwidth = "20Mbps"
latency = "30ms"
[[networks]]
name = "cloud"
bandwidth = "unlimited"
compute = 20
stage_seconds = [0.5, 1]
[model]
kind = "gpt2"
width = 32
layers = 3
heads = 4
context = 64
vocab = 300
dropout = 0
init = "model.safetensors"
recompute = true
subspace = 6
cuts = ["h.0"]

[data]
kind = "text"
root = "elsewhere"
batch_size = 4
block = 16
tokenizer = "gpt2"
train_range = [0, 0.25]
train_file = "train.txt"
test_file = "test.txt"

[train]
optimizer = { kind = "adamw", lr = 1e-3, betas = [0.8, 0.99], eps = 1e-6, weight_decay = 0.1 }
schedule = { kind = "linear", warmup_steps = 7 }
)";

Config text() {
  Config config;
  config.networks = {{.name = "home", .bandwidth = "20Mbps", .latency = "30ms"},
                     {.name = "cloud", .compute = 20, .stage_seconds = {0.5, 1}}};
  config.model = ModelOptions("gpt2", {{"width", 32},
                                       {"layers", 3},
                                       {"heads", 4},
                                       {"context", 64},
                                       {"vocab", 300},
                                       {"dropout", 0},
                                       {"init", "model.safetensors"},
                                       {"recompute", true},
                                       {"subspace", 6}});
  config.model.cuts = {"h.0"};
  config.data = DataOptions("text", {{"block", 16},
                                     {"tokenizer", "gpt2"},
                                     {"train_range", std::vector<double>{0, 0.25}},
                                     {"train_file", "train.txt"},
                                     {"test_file", "test.txt"}});
  config.data.root = "elsewhere";
  config.data.batch_size = 4;
  config.train.optimizer = {
      .kind = "adamw", .lr = 1e-3, .betas = {0.8, 0.99}, .eps = 1e-6, .weight_decay = 0.1};
  config.train.schedule = {.kind = "linear", .warmup_steps = 7};
  return config;
}

/// STRAIT_DATA as it is in a test.
struct DataVariable : test::Variable {
  explicit DataVariable(const char* value) : Variable("STRAIT_DATA", value) {}
};

Config with(const std::vector<std::string>& overrides) { return parse_config("", "empty.toml", overrides); }

TEST(Config, AnEmptyFileGivesTheDefaults) {
  const DataVariable none(nullptr);
  Config defaults;
  defaults.data.root = "data";
  EXPECT_EQ(parse_config("", "empty.toml"), defaults);
  EXPECT_EQ(defaults.train.epochs, 100);
  EXPECT_EQ(defaults.train.optimizer.lr, 0.01);
  EXPECT_EQ(defaults.model.cuts, (std::vector<std::string>{"layer1", "layer2", "layer3"}));
}

TEST(Config, AnOverrideMayHaveAsManyDotsAsAPathHas) {
  const std::string path = "../../../../../../../../../data";
  EXPECT_EQ(with({"data.root=" + path}).data.root, path);
  EXPECT_EQ(with({"data.root=\"" + path + "\""}).data.root, path);
}

TEST(Config, ReadsEveryKeyOfTheManual) { EXPECT_EQ(parse_config(kManual, "manual.toml"), manual()); }

TEST(Config, ReadsEveryKeyOfText) { EXPECT_EQ(parse_config(kText, "text.toml"), text()); }

TEST(Config, KindsDecideDefaults) {
  const Config config = with({"model.kind=gpt2", "data.kind=wikitext2", "train.optimizer.kind=adamw"});
  EXPECT_EQ(config.model.settings.integer("width"), 768);
  EXPECT_EQ(config.model.cuts, (std::vector<std::string>{"h.2", "h.5", "h.8"}));
  EXPECT_EQ(config.data.batch_size, 8);
  EXPECT_EQ(config.data.settings.integer("block"), 1024);
  EXPECT_EQ(config.train.optimizer.lr, 5e-5);
  EXPECT_EQ(config.train.optimizer.weight_decay, 0);
  EXPECT_EQ(with({"train.optimizer.kind=adamw", "train.optimizer.lr=1"}).train.optimizer.lr, 1);
  const auto adam = with({"train.optimizer.kind=adam", "train.optimizer.eps=1e-7"}).train.optimizer;
  EXPECT_EQ(adam, (OptimizerOptions{.kind = "adam", .lr = 1e-3, .eps = 1e-7, .weight_decay = 0}));
}

TEST(Config, KeysOfOtherKindsAreNotWritten) {
  const auto has = [](const std::string& text, const char* key) { return text.find(key) != std::string::npos; };
  const std::string pictures = to_toml(manual());
  const std::string language = to_toml(text());
  for (const char* key : {"heads", "block", "betas", "warmup_steps"}) {
    EXPECT_FALSE(has(pictures, key)) << key;
    EXPECT_TRUE(has(language, key)) << key;
  }
  EXPECT_FALSE(has(language, "momentum"));
  EXPECT_FALSE(has(language, "t_max"));
}

TEST(Config, WritesTheFormOfTheManual) {
  EXPECT_EQ(to_toml(manual()), R"(name = "fw4-bw8"
seed = 3
networks = []

[model]
kind = "resnet18"
width = 32
bottleneck = 8
cuts = ["layer1", "layer3"]

[data]
kind = "shapes"
root = "elsewhere"
train_limit = 10000
test_limit = 500
batch_size = 50
augment = true

[train]
epochs = 7
optimizer = { kind = "sgd", lr = 0.1, momentum = 0.8, weight_decay = 0.0001 }
schedule = { kind = "constant", t_max = 14 }
accumulate = 2
clip_norm = 0.5
precision = "bf16"
log_every = 20
evaluate_every = 40
evaluate_epochs = 3
device = "cpu"
threads = 2

[pipeline]
schedule = "interleaved"
micro_batches = 5
stages_per_rank = 3
replicas = 2
timeout = "90s"
transport = "tcp"
connections = 4
rejoin = "10m"
link = "200Mbps,50ms"

[compression]
activations = { codec = "quant:4", feedback = "none" }
gradients = { codec = "quant:8", feedback = "none" }
replicas = { codec = "topk:0.01", feedback = "ef21" }
boundaries = [{ name = "layer3", activations = { codec = "quant:8" } }, { name = "layer1", activations = { feedback = "aq-sgd" }, gradients = { codec = "fp16", feedback = "ef21" } }]
auto = { ladder = ["none", "quant:8"], budget = 0.02, network = "", every_steps = 50 }
reuse_indices = false
store = { place = "file", format = "bf16", folder = "/tmp", fill = "first_visit" }
start_epoch = 2
end_epoch = 6
start_from = "runs/warm-up"
start_from_optimizer = false
evaluation = "frozen"
diagnostics = 10

[checkpoint]
every_epochs = 2
every_steps = 50
keep = 3
keep_epochs = [2, 20]
copies = -1
)");
}

TEST(Config, ResolvedTextOfManyStagesReadsBackAsTheSame) {
  std::vector<std::string> cuts;
  std::vector<std::string> boundaries;
  for (int i = 0; i < 125; ++i) {
    cuts.push_back(fmt::format("\"layers.{}\"", i));
    boundaries.push_back(fmt::format(
        R"({{ name = "layers.{}", activations.codec = "topk:0.{}", gradients.codec = "topk:0.1" }})", i,
        i + 1));
  }
  const auto text = to_toml(parse_config(
      fmt::format("[model]\nkind = \"llama\"\nlayers = 126\ncuts = [{}]\n[data]\nkind = \"wikitext2\"\n"
                  "[compression]\nboundaries = [\n{}]\n",
                  list_of(cuts), fmt::join(boundaries, ",\n")),
      "many.toml"));
  EXPECT_EQ(to_toml(parse_config(text, "resolved.toml")), text);
}

TEST(Config, ResolvedTextReadsBackAsTheSame) {
  Config odd = manual();
  odd.seed = (uint64_t{1} << 63) - 1;
  odd.data.root = "a \"b\"\\c\n\x7f\td\xc3\xa9";
  odd.data.train_limit = std::numeric_limits<int64_t>::max();
  odd.train.epochs = std::numeric_limits<int>::max();
  odd.train.optimizer.lr = 1e-300;
  odd.train.optimizer.momentum = 0.1 + 0.2;
  odd.train.optimizer.weight_decay = 1e22;
  odd.model.cuts = {};
  odd.compression.boundaries = {};
  odd.pipeline.stages_per_rank = 1;
  for (const auto& config : {Config{}, manual(), text(), odd}) {
    const auto text = to_toml(config);
    EXPECT_EQ(parse_config(text, "resolved.toml"), config) << text;
    EXPECT_EQ(to_toml(parse_config(text, "resolved.toml")), text);
  }
}

TEST(Config, AnIntegerServesAsANumber) {
  EXPECT_EQ(with({"train.optimizer.lr=1"}).train.optimizer.lr, 1.0);
  EXPECT_EQ(with({"train.optimizer.weight_decay=0"}).train.optimizer.weight_decay, 0.0);
}

TEST(Config, DataRootComesFromTheEnvironmentLast) {
  const DataVariable variable("/from/environment");
  EXPECT_EQ(parse_config("", "a.toml").data.root, "/from/environment");
  EXPECT_EQ(parse_config("data.root = 'file'", "a.toml").data.root, "file");
  EXPECT_EQ(with({"data.root=flag"}).data.root, "flag");
  const DataVariable empty("");
  EXPECT_EQ(parse_config("", "a.toml").data.root, "data");
  const DataVariable latin1("caf\xe9");
  EXPECT_THROW(parse_config("", "a.toml"), InputError);
}

TEST(Config, OverridesAreTomlOrText) {
  const auto config =
      with({"compression.activations.codec=none", "train.optimizer.lr=0.5", "data.train_limit=1000",
            "model.cuts=[\"layer1\"]", "name=\"quoted\"", "data.root=a b=c",
            "train.schedule={kind=\"constant\"}", "train.epochs=4", "train.epochs=5"});
  EXPECT_EQ(config.compression.activations.codec, "none");
  EXPECT_EQ(config.train.optimizer.lr, 0.5);
  EXPECT_EQ(config.data.train_limit, 1000);
  EXPECT_EQ(config.model.cuts, std::vector<std::string>{"layer1"});
  EXPECT_EQ(config.data.root, "a b=c");
  EXPECT_EQ(config.name, "quoted");
  EXPECT_EQ(config.train.schedule.kind, "constant");
  EXPECT_EQ(config.train.schedule.t_max, 200) << "a table is merged, not replaced";
  EXPECT_EQ(config.train.epochs, 5) << "the last one wins";
}

TEST(Config, AnOverrideCannotSmuggleInAnotherKey) {
  EXPECT_EQ(with({"data.root=1\nseed = 5"}).seed, 0U);
  EXPECT_EQ(with({"data.root=1\nseed = 5"}).data.root, "1\nseed = 5");
}

TEST(Config, ABaseStandsUnderTheFile) {
  const test::TempDir dir;
  std::filesystem::create_directories(dir / "deep");
  test::write_file(dir / "root.toml", "seed = 1\n[train]\nepochs = 2\noptimizer = { lr = 0.5 }\n");
  test::write_file(dir / "deep/middle.toml",
                   "base = \"../root.toml\"\nseed = 2\n[train.optimizer]\nmomentum = 0.5\n");
  test::write_file(dir / "top.toml",
                   "base = \"deep/middle.toml\"\ntrain.epochs = 3\nmodel.cuts = [\"layer2\"]\n");
  const std::vector<std::string> overrides = {"seed=4"};
  const auto config = load_config(dir / "top.toml", overrides);
  EXPECT_EQ(config.seed, 4U);
  EXPECT_EQ(config.train.epochs, 3);
  EXPECT_EQ(config.train.optimizer.lr, 0.5);
  EXPECT_EQ(config.train.optimizer.momentum, 0.5);
  EXPECT_EQ(config.model.cuts, std::vector<std::string>{"layer2"}) << "an array is replaced";
  EXPECT_EQ(to_toml(config).find("base"), std::string::npos);
}

TEST(Config, HashIsOfWhatDecidesTheResult) {
  Config config = manual();
  const auto hash = config_hash(config);
  EXPECT_EQ(hash.size(), 16U);
  EXPECT_EQ(hash.find_first_not_of("0123456789abcdef"), std::string::npos);
  config.name = "other";
  config.data.root = "other";
  config.checkpoint = {0, 7, 2, {1}};
  config.networks = {{.name = "home"}};
  config.pipeline.link = "1Gbps,20ms";
  EXPECT_EQ(config_hash(config), hash);
  config.train.epochs += 1;
  EXPECT_NE(config_hash(config), hash);
}

TEST(Config, HashIsOfTheLinkWhereCodecsAreChosenByTime) {
  Config config;
  config.model.cuts = {"layer1"};
  config.networks = {{.name = "home", .bandwidth = "20Mbps"}, {.name = "other", .bandwidth = "1Mbps"}};
  config.pipeline.link = "1Gbps,20ms";
  config.compression.gradients.codec = kAutoCodec;
  const auto changed = [](Config other, const auto& change) {
    const auto before = config_hash(other);
    change(other);
    return config_hash(other) != before;
  };
  const auto set_link = [](Config& other) { other.pipeline.link = "2Gbps"; };
  const auto set_home = [](Config& other) { other.networks[0].compute = 3; };
  const auto set_other = [](Config& other) { other.networks[1].latency = "1s"; };
  EXPECT_TRUE(changed(config, set_link));
  EXPECT_FALSE(changed(config, set_home));

  Config named = config;
  named.compression.automatic.network = "home";
  EXPECT_FALSE(changed(named, set_link));
  EXPECT_TRUE(changed(named, set_home));
  EXPECT_FALSE(changed(named, set_other));

  Config by_error = named;
  by_error.compression.automatic.budget = 0.1;
  EXPECT_FALSE(changed(by_error, set_link));
  EXPECT_FALSE(changed(by_error, set_home));
  by_error.compression.automatic.network.clear();
  EXPECT_FALSE(changed(by_error, set_link));

  Config elsewhere = config;  // nothing is left to choose at the only boundary
  elsewhere.compression.boundaries = {{"layer1", {}, {"fp16", {}}}};
  EXPECT_FALSE(changed(elsewhere, set_link));
}

TEST(Config, ADifferingKeyIsOneThatDecides) {
  Config config;
  Config other;
  other.name = "other";
  other.pipeline.timeout = "1s";
  EXPECT_EQ(differing_key(config, other), std::nullopt);
  other.train.epochs += 1;
  EXPECT_EQ(differing_key(config, other), "train.epochs");
  EXPECT_EQ(differing_key(other, config), "train.epochs");
}

TEST(Config, WhatDecidesLeavesOutDefaults) {
  Config config;
  using Keys = std::vector<std::pair<std::string, std::string>>;
  const Keys kinds = {{"model.kind", "\"resnet18\""},
                      {"data.kind", "\"cifar10\""},
                      {"train.optimizer.kind", "\"sgd\""},
                      {"train.schedule.kind", "\"cosine\""}};
  EXPECT_EQ(deciding_keys(config), kinds);
  config.data.root = "elsewhere";
  config.compression.end_epoch = 3;
  Keys expected = kinds;
  expected.emplace_back("compression.end_epoch", "3");
  EXPECT_EQ(deciding_keys(config), expected);
}

}  // namespace
}  // namespace strait
