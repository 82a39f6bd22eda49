#include "strait/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "strait/base/error.h"
#include "strait/formats/safetensors.h"
#include "strait/models/resnet18.h"
#include "strait/pipeline/data_parallel.h"
#include "strait/run/metrics_json.h"
#include "strait/train/optimizer.h"
#include "strait/train/task.h"
#include "tests/support/nested.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Score scored(double loss, double accuracy) { return {loss, {{"accuracy", accuracy}}}; }

CheckpointRecord sample_record() {
  CheckpointRecord record;
  record.state = {
      .epoch = 3,
      .batches = 17,
      .step = 1017,
      .sums = {0.1 + 0.2, 5, 34, 17},
      .seconds = 1.0 / 3,
      .data_wait_seconds = 1e-9,
      .traffic = {{"layer1", {1, 2, 3, 0.5, 0.25}, {4, 5, 6, 0.75, 0.125}}},
      .evaluations = {{.step = 1000,
                       .test = {.off = scored(1.0 / 3, 50),
                                .on = scored(0.25, 25),
                                .samples = 30,
                                .modes = {{EvaluationMode::plain, scored(0.25, 25)}}}}},
      .evaluation_seconds = 2.0 / 3,
      .stages = {{{2, "layer2..layer3"}, {1.5, 2.0 / 3, 9}}},
      .choices = {{.step = 1000,
                   .boundaries = {{"layer1",
                                   {.codec = "quant:4",
                                    .relative_error = 1.0 / 3,
                                    .link = {.bytes_per_second = 2.5e6, .latency_seconds = 0.1}},
                                   {.codec = "none", .cosines = {{"none", 1}, {"quant:4", 2.0 / 3}}}}},
                   .step_seconds = 0.7,
                   .step_factor = 1.1}},
      .layers = {{"layer1",
                  {{"quant:4", {{1.0 / 3, 2}, {3, 4.0 / 7}, {5, 6}, 24, 8, false}},
                   {"topk:0.1", {{0, 1}, {-1e-3, 3}, {1e30, 5}, 12, 4, true}}}}}};
  record.seed = std::numeric_limits<uint64_t>::max();
  record.metrics = {"{\"epoch\":0}", "{\"epoch\":1,\"x\":\"caf\u00e9\"}"};
  record.config = "name = \"caf\u00e9\"\n";
  record.checksums = {{"a.safetensors", {{"x", std::numeric_limits<uint64_t>::max()}}}};
  return record;
}

template <class Action>
std::string input_error_of(Action action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(CheckpointRecord, ReadsBackToTheLastBit) {
  const test::TempDir dir;
  const CheckpointRecord record = sample_record();
  write_record(dir.path(), record);
  const CheckpointRecord read = read_record(dir.path());
  EXPECT_EQ(read.state.epoch, 3);
  EXPECT_EQ(read.state.batches, 17);
  EXPECT_EQ(read.state.step, 1017U);
  EXPECT_EQ(read.state.sums.loss_sum, 0.1 + 0.2);
  EXPECT_EQ(read.state.sums.correct, 5);
  EXPECT_EQ(read.state.sums.count, 34);
  EXPECT_EQ(read.state.sums.rows, 17);
  EXPECT_EQ(read.state.seconds, 1.0 / 3);
  EXPECT_EQ(read.state.data_wait_seconds, 1e-9);
  EXPECT_EQ(to_json(read.state.traffic), to_json(record.state.traffic));
  EXPECT_EQ(to_json(read.state.evaluations), to_json(record.state.evaluations));
  EXPECT_EQ(read.state.evaluation_seconds, 2.0 / 3);
  EXPECT_EQ(to_json(read.state.stages), to_json(record.state.stages));
  EXPECT_EQ(to_json(read.state.choices), to_json(record.state.choices));
  EXPECT_EQ(read.state.choices.at(0).boundaries.at(0).gradients.cosines,
            (std::map<std::string, double>{{"none", 1}, {"quant:4", 2.0 / 3}}));
  EXPECT_EQ(read.state.choices.at(0).boundaries.at(0).activations.link.bytes_per_second, 2.5e6);
  EXPECT_FALSE(read.state.choices.at(0).boundaries.at(0).gradients.relative_error);
  EXPECT_EQ(read.state.layers, record.state.layers);
  EXPECT_EQ(read.metrics, record.metrics);
  EXPECT_EQ(read.seed, record.seed);
  EXPECT_EQ(read.config, record.config);
  EXPECT_EQ(read.checksums, record.checksums);
}

// AutomaticCodecs adds up what all replicas have.
TEST(CheckpointRecord, WhatReplicasSawOfGradientsCountsOnceHoweverManyGoOn) {
  const test::TempDir dir;
  std::vector<std::filesystem::path> parts;
  for (const int rank : {0, 1}) {
    CheckpointRecord record = sample_record();
    record.place = {.rank = rank, .ranks = 2, .replicas = 2};
    record.state.layers["layer1"]["quant:4"].pairs = 24 + 6 * rank;
    parts.push_back(dir / std::to_string(rank));
    std::filesystem::create_directory(parts.back());
    write_record(parts.back(), record);
  }
  const auto pairs = [&](const RankTopology& reader) {
    double sum = 0;
    for (const auto& [boundary, codecs] : Checkpoint(parts, reader).state().layers)
      sum += codecs.at("quant:4").pairs;
    return sum;
  };
  EXPECT_EQ(pairs({.rank = 0, .ranks = 1, .replicas = 1}), 54);
  EXPECT_EQ(pairs({.rank = 1, .ranks = 2, .replicas = 1}), 54);  // the stage whose boundary it is
  EXPECT_EQ(pairs({.rank = 0, .ranks = 4, .replicas = 4}), 54);
  EXPECT_EQ(pairs({.rank = 3, .ranks = 4, .replicas = 4}), 0);
  EXPECT_EQ(pairs({.rank = 1, .ranks = 4, .replicas = 2}), 24);
  EXPECT_EQ(pairs({.rank = 2, .ranks = 4, .replicas = 2}), 30);
}

TEST(CheckpointRecord, WhatIsNotOneIsRefused) {
  const test::TempDir dir;
  const auto error = [&] { return input_error_of([&] { read_record(dir.path()); }); };
  EXPECT_THAT(error(), HasSubstr("position.json: cannot be opened"));
  for (const char* text : {"", "{", "[]", "{}", "7", "{\"format\":2}", "{\"format\":2,\"checksum\":\"x\"}"}) {
    test::write_file(dir / "position.json", text);
    EXPECT_THAT(error(), HasSubstr("position.json: ")) << text;
  }
  test::write_file(dir / "position.json", R"({"format":2,"checksum":0,"x":)" + test::nested(300'000) + "}");
  EXPECT_THAT(error(), HasSubstr("position.json: is nested deeper than 100 levels"));
  test::write_file(dir / "position.json", "{\"format\":2,\"checksum\":1e999}");
  EXPECT_THAT(error(), HasSubstr("position.json: the number 1e999 is too large"));
  test::write_file(dir / "position.json", "{\"format\":1}");
  EXPECT_THAT(error(), HasSubstr("has format 1, expected 2"));
  write_record(dir.path(), sample_record());
  std::string text = test::read_file(dir / "position.json");
  text.replace(text.find("1017"), 4, "1018");
  test::write_file(dir / "position.json", text);
  EXPECT_THAT(error(), HasSubstr("its content does not fit its checksum"));
}

TEST(EpochMetrics, ReadBackFromJson) {
  EpochMetrics metrics;
  metrics.epoch = 2;
  metrics.steps = 7;
  metrics.train = scored(1.0 / 7, 33.3);
  metrics.test = {.off = scored(0.5, 50),
                  .on = scored(0.25, 25),
                  .samples = 30,
                  .named = EvaluationMode::live,
                  .modes = {{EvaluationMode::plain, scored(0.75, 10)},
                            {EvaluationMode::frozen, scored(0.5, 20)},
                            {EvaluationMode::live, scored(0.25, 25)}}};
  metrics.evaluations = {{.step = 3, .test = *metrics.test}, {.step = 6, .test = *metrics.test}};
  metrics.lr = 0.01;
  metrics.seconds = 2.5;
  metrics.boundaries = sample_record().state.traffic;
  metrics.choices = sample_record().state.choices;
  metrics.boundaries[0].activation_diagnostics = {.messages = 3,
                                                  .zeros = 0.5,
                                                  .quantiles = {0, 1.5, 2.5, 7},
                                                  .relative_error = 0.1,
                                                  .cosine = {},
                                                  .residual_norm = 0.25};
  EXPECT_EQ(to_json(parse_epoch(to_line(metrics), "line")), to_json(metrics));
  EXPECT_EQ(to_json(*metrics.test), nlohmann::json::parse(R"({
      "off": {"loss": 0.5, "accuracy": 50.0}, "on": {"loss": 0.25, "accuracy": 25.0}, "evaluation": "live",
      "plain": {"loss": 0.75, "accuracy": 10.0}, "frozen": {"loss": 0.5, "accuracy": 20.0},
      "live": {"loss": 0.25, "accuracy": 25.0}, "samples": 30})"));
  EXPECT_EQ(to_json(metrics)["evaluations"][1]["step"], 6);
  EXPECT_THROW(parse_epoch("{}", "line"), InputError);
  EpochMetrics unscored = metrics;
  unscored.test.reset();
  EXPECT_FALSE(to_json(unscored).contains("test"));
  EXPECT_FALSE(parse_epoch(to_line(unscored), "line").test);
  EXPECT_EQ(to_json(metrics).dump().find("perplexity"), std::string::npos) << "that is for text";
  metrics.test->off.metrics["perplexity"] = std::exp(0.5);
  metrics.test->on = {1000, {{"accuracy", 0}, {"perplexity", std::exp(1000.0)}}};
  metrics.train.metrics["perplexity"] = 7;
  metrics.tokens_per_second = 123.5;
  const auto line = to_json(metrics);
  EXPECT_EQ(line["test"]["off"]["perplexity"], std::exp(0.5));
  EXPECT_TRUE(line["test"]["on"]["perplexity"].is_null()) << "JSON has no infinity";
  const EpochMetrics read = parse_epoch(line.dump(), "line");
  EXPECT_FALSE(line.contains("train_perplexity")) << "the loss says it";
  EXPECT_EQ(to_json(read), line);
  EXPECT_EQ(read.test->on.at(kPerplexity), std::numeric_limits<double>::infinity());
  EXPECT_EQ(read.tokens_per_second, 123.5);
}

TEST(EpochMetrics, OlderRunsKeptCosinesOfAllBoundaries) {
  EpochMetrics metrics;
  metrics.choices = sample_record().state.choices;
  auto line = to_json(metrics);
  line["choices"][0]["cosines"] = {
      {"step", 4}, {"activations", {nullptr, 0.97}}, {"gradients", {1.0, nullptr}}};
  const EpochMetrics read = parse_epoch(line.dump(), "line");
  EXPECT_EQ(to_json(read.choices), to_json(metrics.choices));
}

TEST(EpochMetrics, OlderRunsWereScoredPlain) {
  const auto old = nlohmann::json::parse(
      R"({"off": {"loss": 0.5, "accuracy": 50.0}, "on": {"loss": 0.25, "accuracy": 25.0}, "samples": 30})");
  const std::string origin = "test";
  const Evaluation evaluation = evaluation_in({old, origin});
  EXPECT_EQ(evaluation.named, EvaluationMode::plain);
  ASSERT_EQ(evaluation.modes.size(), 1U);
  EXPECT_EQ(evaluation.modes.at(EvaluationMode::plain).loss, 0.25);
}

TEST(Evaluation, OnIsTheModeThatIsAskedFor) {
  const auto sums = [](double loss) {
    return StepResult{.loss_sum = loss, .correct = 1, .count = 1, .rows = 1};
  };
  std::map<EvaluationMode, StepResult> scored = {{EvaluationMode::off, sums(1)},
                                                 {EvaluationMode::plain, sums(2)}};
  EXPECT_EQ(evaluation_of(scored, EvaluationMode::live, classification()).on.loss, 2)
      << "without feedback it is the same";
  scored[EvaluationMode::frozen] = sums(3);
  scored[EvaluationMode::live] = sums(4);
  for (const auto& [mode, loss] :
       {std::pair(EvaluationMode::plain, 2.0), std::pair(EvaluationMode::frozen, 3.0),
        std::pair(EvaluationMode::live, 4.0)}) {
    const Evaluation evaluation = evaluation_of(scored, mode, classification());
    EXPECT_EQ(evaluation.named, mode);
    EXPECT_EQ(evaluation.on.loss, loss);
    EXPECT_EQ(evaluation.off.loss, 1);
    EXPECT_EQ(evaluation.modes.size(), 3U);
  }
}

TEST(Score, TheBetterOneIsByAccuracyOrOfTextByTheLoss) {
  EXPECT_TRUE(is_better(scored(2, 50), scored(1, 40)));
  EXPECT_FALSE(is_better(scored(1, 50), scored(2, 50)));
  const Score good = score_of({.loss_sum = 4, .correct = 0, .count = 4}, language_modeling());
  const Score bad = score_of({.loss_sum = 8, .correct = 4, .count = 4}, language_modeling());
  EXPECT_TRUE(is_better(good, bad));
  EXPECT_FALSE(is_better(bad, good));
  EXPECT_DOUBLE_EQ(good.at(kPerplexity), std::exp(1.0));
  EXPECT_TRUE(is_better({.loss = 1, .metrics = {{"R2", 0.1}}}, {.loss = 2, .metrics = {{"R2", 0.2}}}))
      << "by the loss where no metric is known";
}

TEST(Traffic, AddsUpBoundaryByBoundary) {
  std::vector<BoundaryTraffic> sum = {{"a", {1, 10, 5, 0, 0}, {}}};
  add_traffic(sum, {{"b", {2, 20, 9, 0, 0}, {}}, {"a", {3, 30, 8, 0, 0}, {}}});
  ASSERT_EQ(sum.size(), 2U);
  EXPECT_EQ(sum[0].activations.raw_bytes, 40U);
  EXPECT_EQ(sum[1].name, "b");
  EXPECT_EQ(sum[1].activations.messages, 2U);
}

/// What a checkpoint is taken of: a network, an optimizer and one boundary with state at three ends.
struct Training {
  explicit Training(int width = 2, const OptimizerOptions& kind = {}) : model(make_resnet18(width, 10)) {
    optimizer = make_optimizer(kind, model.parameters());
    CompressionOptions options;
    options.activations = {"topk:0.5", "ef21"};
    options.gradients = {"topk:0.5", "ef"};
    boundaries.emplace_back("layer2", uint16_t{0}, links_of(options, "layer2"), 0, BoundaryEndpoints::Local{});
  }

  void step() {
    const at::Tensor x = torch::ones({2, 3, 32, 32});
    model.forward(x, 0, model.layers.size()).sum().backward();
    optimizer->step();
    boundaries[0].activations.sender->encode(torch::randn({2, 4}), {}, {});
    boundaries[0].gradients.sender->encode(torch::randn({2, 4}), {}, {});
  }

  StateVisit optimizer_state() {
    return [this](StateVisitor& visitor) { optimizer->visit_state(model.named_parameters(), visitor); };
  }
  StateVisit replicas_state() {
    return [this](StateVisitor& visitor) { data_parallel.visit_state(visitor); };
  }

  void write(const std::filesystem::path& folder) {
    write_checkpoint(folder, model, optimizer_state(), boundaries, replicas_state(), sample_record());
  }

  void load(const std::filesystem::path& folder) {
    const Checkpoint checkpoint({folder});
    checkpoint.load_weights(model, model);
    checkpoint.load_optimizer(optimizer_state(), optimizer->state_names(), true);
    checkpoint.load_links(boundaries, replicas_state(), true);
    checkpoint.load_random();
  }

  Model model;
  std::unique_ptr<Optimizer> optimizer;
  DataParallel data_parallel;
  std::vector<BoundaryEndpoints> boundaries;
};

std::vector<std::string> names_in_file(const std::filesystem::path& path) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : read_safetensors(path).tensors) names.push_back(name);
  return names;
}

class CheckpointFiles : public testing::Test {
 protected:
  CheckpointFiles() {
    std::filesystem::create_directory(first_);
    std::filesystem::create_directory(second_);
  }

  test::TempDir dir_;
  std::filesystem::path first_ = dir_ / "first";
  std::filesystem::path second_ = dir_ / "second";
};

TEST_F(CheckpointFiles, LoadedAndWrittenAgainTheyAreTheSameBytes) {
  Training training;
  training.step();
  training.step();
  training.write(first_);
  const at::Tensor drawn = torch::rand({5});
  Training other;
  other.load(first_);
  other.write(second_);
  for (const char* file : {kWeightsFile, kOptimizerFile, kLinksFile, kRandomFile, "position.json"}) {
    EXPECT_EQ(test::read_file(first_ / file), test::read_file(second_ / file)) << file;
  }
  EXPECT_TRUE(at::equal(torch::rand({5}), drawn));
  EXPECT_NO_THROW(read_safetensors(first_ / kWeightsFile).find("layer4.1.bn2.running_var")->sum());
  EXPECT_THAT(names_in_file(first_ / kLinksFile),
              ElementsAre("layer2.activations.sender.estimate", "layer2.gradients.sender.residual"));
  EXPECT_EQ(names_in_file(first_ / kOptimizerFile).at(0), "conv1.weight.momentum_buffer");
}

/// Writes what two steps lead to, loads it into the other and takes a third step in both.
void expect_to_go_on_alike(Training& training, Training& other, const std::filesystem::path& folder) {
  training.step();
  training.step();
  training.write(folder);
  other.load(folder);
  for (Training* each : {&training, &other}) {
    each->optimizer->zero_grad();
    each->step();
  }
  for (size_t i = 0; i < training.model.state().size(); ++i) {
    EXPECT_TRUE(at::equal(training.model.state()[i].second, other.model.state()[i].second));
  }
}

TEST_F(CheckpointFiles, EveryOptimizerGoesOnToTheSameBits) {
  for (const auto& kind : optimizer_kinds()) {
    const OptimizerOptions options{.kind = kind.name, .weight_decay = 0.01};
    Training training(2, options);
    Training other(2, options);
    const auto folder = dir_ / kind.name;
    std::filesystem::create_directory(folder);
    expect_to_go_on_alike(training, other, folder);
    EXPECT_EQ(names_in_file(folder / kOptimizerFile).at(0),
              "conv1.weight." + training.optimizer->state_names().at(0));
    if (!kind.has_betas) continue;
    EXPECT_THAT(
        names_in_file(folder / kOptimizerFile),
        testing::IsSupersetOf({"conv1.weight.exp_avg", "conv1.weight.exp_avg_sq", "conv1.weight.step"}));
    EXPECT_EQ(read_safetensors(folder / kOptimizerFile).find("conv1.weight.step")->item<int64_t>(), 2);
  }
}

/// LibTorch's RMSprop, which is no kind of the list.
std::unique_ptr<Optimizer> make_rmsprop(const std::vector<at::Tensor>& parameters) {
  using State = torch::optim::RMSpropParamState;
  OptimizerState form;
  form.names = {"square_avg"};
  form.take = [](const torch::optim::OptimizerParamState& state) {
    return std::vector<at::Tensor>{static_cast<const State&>(state).square_avg()};
  };
  form.make = [](const std::vector<at::Tensor>& tensors, const at::Tensor& parameter) {
    auto state = std::make_unique<State>();
    state->square_avg(tensors[0].to(parameter.device()));
    return state;
  };
  return std::make_unique<Optimizer>(std::make_unique<torch::optim::RMSprop>(parameters), form);
}

TEST_F(CheckpointFiles, AnOptimizerOfAProgramsOwnGoesOnToTheSameBits) {
  Training training;
  Training other;
  for (Training* each : {&training, &other}) each->optimizer = make_rmsprop(each->model.parameters());
  expect_to_go_on_alike(training, other, first_);
  Training sgd;
  EXPECT_THAT(input_error_of([&] { sgd.load(first_); }), HasSubstr("\"conv1.weight.square_avg\" is no state"));
}

TEST_F(CheckpointFiles, OfAnotherOptimizerAreRefused) {
  const OptimizerOptions adamw{.kind = "adamw"};
  Training sgd;
  sgd.step();
  sgd.write(first_);
  Training other(2, adamw);
  other.step();
  other.write(second_);
  for (const bool exactly : {false, true}) {
    EXPECT_THAT(input_error_of([&] {
                  Checkpoint({first_}).load_optimizer(other.optimizer_state(), other.optimizer->state_names(),
                                                      exactly);
                }),
                HasSubstr("optimizer.safetensors: tensor \"conv1.weight.momentum_buffer\" is no state of this "
                          "optimizer (train.optimizer.kind)"));
    EXPECT_THAT(
        input_error_of([&] {
          Checkpoint({second_}).load_optimizer(sgd.optimizer_state(), sgd.optimizer->state_names(), exactly);
        }),
        HasSubstr("optimizer.safetensors: tensor \"conv1.weight.exp_avg\" is no state of this optimizer "
                  "(train.optimizer.kind)"));
  }
}

TEST_F(CheckpointFiles, WhatWasNeverUsedIsAbsent) {
  Training training;
  training.write(first_);
  EXPECT_TRUE(names_in_file(first_ / kOptimizerFile).empty());
  EXPECT_TRUE(names_in_file(first_ / kLinksFile).empty());
  Training other;
  other.load(first_);
  other.step();
  training.load(first_);
  training.step();
  for (size_t i = 0; i < training.model.state().size(); ++i) {
    EXPECT_TRUE(at::equal(training.model.state()[i].second, other.model.state()[i].second));
  }
}

TEST_F(CheckpointFiles, EveryWrongTensorIsNamed) {
  Training training;
  training.step();
  training.write(first_);
  const auto error = [&] { return input_error_of([&] { Training().load(first_); }); };
  const auto with = [&](const char* file, auto change) {
    const std::string before = test::read_file(first_ / file);
    TensorFile content = read_safetensors(first_ / file);
    change(content.tensors);
    write_safetensors(first_ / file, content);
    const std::string message = error();
    test::write_file(first_ / file, before);
    EXPECT_THAT(message, HasSubstr((first_ / file).string() + ": "));
    return message;
  };
  const auto drop = [](auto& tensors) { tensors.erase(tensors.begin()); };
  const auto change = [](auto& tensors) { tensors[0].second.view(-1)[0] += 1; };
  const auto reshape = [](auto& tensors) { tensors[0].second = tensors[0].second.flatten(); };
  const auto add = [](auto& tensors) { tensors.emplace_back("more", torch::ones({1})); };
  const auto retype = [](auto& tensors) { tensors[0].second = tensors[0].second.view(at::kInt); };
  EXPECT_THAT(with(kWeightsFile, drop), HasSubstr("tensor \"conv1.weight\" is missing"));
  EXPECT_THAT(with(kOptimizerFile, drop), HasSubstr("tensor \"conv1.weight.momentum_buffer\" is missing"));
  EXPECT_THAT(with(kLinksFile, drop), HasSubstr("tensor \"layer2.activations.sender.estimate\" is missing"));
  for (const char* file : {kWeightsFile, kOptimizerFile, kLinksFile}) {
    EXPECT_THAT(with(file, change), HasSubstr("does not fit its checksum in position.json"));
    EXPECT_THAT(with(file, reshape), HasSubstr("does not fit its checksum in position.json"));
    EXPECT_THAT(with(file, retype), HasSubstr("does not fit its checksum in position.json"));
    EXPECT_THAT(with(file, add), HasSubstr("tensor \"more\""));
  }
  EXPECT_THAT(with(kRandomFile, change), HasSubstr("tensor \"cpu\" does not fit its checksum"));
  EXPECT_THAT(with(kRandomFile, drop), HasSubstr("tensor \"cpu\" is missing"));
  EXPECT_EQ(error(), "no error");
}

TEST_F(CheckpointFiles, AnotherNetworkIsRefused) {
  Training training;
  training.write(first_);
  EXPECT_THAT(
      input_error_of([&] { Training(4).load(first_); }),
      HasSubstr("model.safetensors: tensor \"conv1.weight\" is F32 of shape [2, 3, 3, 3], expected F32, F16 "
                "or BF16 of shape [4, 3, 3, 3]"));
}

TEST_F(CheckpointFiles, AProcessMayHaveAPartOfTheNetworkButOfNoSmallerOne) {
  Training training;
  training.write(first_);
  const Checkpoint checkpoint({first_});
  const auto has = [](const Model& model) { return test::copy_of(model); };
  Model network = make_resnet18(2, 10);
  Model part = network.part({1, 3});
  checkpoint.load_weights(part, network);
  test::expect_equal(has(part), has(training.model.part({1, 3})));
  EXPECT_THAT(input_error_of([&] {
                checkpoint.load_weights(part, network.part({0, 3}));
              }),
              HasSubstr("is not part of the model"));
}

TEST_F(CheckpointFiles, LinkStateBelongsToItsBoundary) {
  Training training;
  training.step();
  training.write(first_);
  const Checkpoint checkpoint({first_});
  Training other;
  other.boundaries[0].name = "layer3";
  EXPECT_THAT(input_error_of([&] { checkpoint.load_links(other.boundaries, other.replicas_state(), true); }),
              HasSubstr("links.safetensors: has no feedback state of boundary \"layer3\""));
  other.boundaries.clear();
  for (const bool exactly : {true, false}) {  // as one process has it, and as one of several
    EXPECT_THAT(
        input_error_of([&] { checkpoint.load_links(other.boundaries, other.replicas_state(), exactly); }),
        HasSubstr("tensor \"layer2.activations.sender.estimate\" belongs to no boundary of model.cuts"));
  }
  // A boundary without state needs none.
  other.boundaries.emplace_back("layer1", uint16_t{0}, links_of({}, "layer1"), 0, BoundaryEndpoints::Local{});
  other.boundaries.push_back(std::move(training.boundaries[0]));
  EXPECT_NO_THROW(checkpoint.load_links(other.boundaries, other.replicas_state(), true));
}

TEST_F(CheckpointFiles, EvaluationTakesOnlyWhatItReads) {
  Training training;
  training.step();
  training.write(first_);
  const auto names = [](BoundaryEndpoints& boundary) {
    struct Lister : StateVisitor {
      void tensor(std::string_view name, at::Tensor& value) override {
        if (value.defined()) names.emplace_back(name);
      }
      std::vector<std::string> names;
    } lister;
    boundary.visit_state(lister);
    return lister.names;
  };
  Training other;
  EXPECT_TRUE(Checkpoint({first_}).load_evaluation_state(other.boundaries));
  EXPECT_THAT(names(other.boundaries[0]),
              ElementsAre("layer2.activations.sender.estimate", "layer2.activations.receiver.estimate"));
  other.boundaries[0].name = "layer3";
  EXPECT_FALSE(Checkpoint({first_}).load_evaluation_state(other.boundaries));
  Training fresh;
  fresh.write(second_);
  EXPECT_FALSE(Checkpoint({second_}).load_evaluation_state(fresh.boundaries));
}

}  // namespace
}  // namespace strait
