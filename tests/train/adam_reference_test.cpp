// Adam, AdamW, the linear schedule, clipping and the loss of a language model held against python3-torch.

#include <gtest/gtest.h>

#include <torch/torch.h>
#include <nlohmann/json.hpp>

#include "strait/formats/safetensors.h"
#include "strait/train/loss.h"
#include "strait/train/optimizer.h"
#include "tests/support/python.h"
#include "tests/support/temp_dir.h"
#include "tests/train/token_network.h"

namespace strait {
namespace {

using nlohmann::json;

constexpr int64_t kBlocks = 22;  // 5 steps per epoch

json config_of(const TrainerOptions& options) {
  const auto& optimizer = options.train.optimizer;
  return {{"kind", optimizer.kind},
          {"lr", optimizer.lr},
          {"betas", optimizer.betas},
          {"eps", optimizer.eps},
          {"weight_decay", optimizer.weight_decay},
          {"warmup_steps", options.train.schedule.warmup_steps},
          {"clip_norm", options.train.clip_norm},
          {"epochs", options.train.epochs},
          {"batch_size", options.batch_size}};
}

/// The mean losses of each epoch.
struct Recorder : TrainObserver {
  void on_epoch(const EpochMetrics& metrics) override { losses.push_back(metrics.train.loss); }
  std::vector<double> losses;
};

class AdamReference : public testing::TestWithParam<const char*> {};

TEST_P(AdamReference, TenStepsEqualPyTorchs) {
  const test::TempDir dir;
  TrainerOptions options = test::token_options();
  options.train.optimizer.kind = GetParam();
  options.train.optimizer.betas = {0.8, 0.95};
  options.train.optimizer.eps = 1e-7;
  const auto data = test::token_data(kBlocks);
  torch::manual_seed(4);
  const at::Tensor logits = torch::randn({kBlocks, test::kBlock, test::kVocabulary});
  TensorFile file{{{"tokens", data->inputs()}, {"logits", logits}}, {}};
  for (int epoch = 0; epoch < options.train.epochs; ++epoch) {
    file.tensors.emplace_back(fmt::format("order.{}", epoch),
                              torch::tensor(epoch_order(options.seed, epoch, kBlocks)));
  }
  write_safetensors(dir / "data.safetensors", file);
  Model model = test::token_model();
  write_safetensors(dir / "init.safetensors", {model.state(), {}});
  test::write_file(dir / "config.json", config_of(options).dump());
  const json reference = json::parse(test::run_torch_python("adam_reference.py", dir.path().string()));

  Trainer trainer(std::move(model), options);
  Recorder recorder;
  ASSERT_TRUE(trainer.train({data, data}, recorder));
  const TensorFile trained = read_safetensors(dir / "trained.safetensors");
  for (const auto& [name, value] : trainer.collect_model().state()) {
    ASSERT_NE(trained.find(name), nullptr) << name;
    EXPECT_TRUE(at::allclose(value, *trained.find(name), 0, 1e-5)) << name;
  }
  const auto losses = reference["losses"].get<std::vector<double>>();
  ASSERT_EQ(losses.size(), 10U);
  for (size_t epoch = 0; epoch < 2; ++epoch) {
    const double* of = losses.data() + 5 * epoch;  // the fifth step has 2 samples
    const double mean = (5 * (of[0] + of[1] + of[2] + of[3]) + 2 * of[4]) / kBlocks;
    EXPECT_NEAR(recorder.losses.at(epoch), mean, 1e-5);
  }
  const auto rates = reference["rates"].get<std::vector<double>>();
  for (int64_t step = 0; step < 10; ++step) {
    EXPECT_NEAR(
        learning_rate(options.train.schedule, options.train.optimizer.lr, {.step = step, .all_steps = 10}),
        rates[static_cast<size_t>(step)], 1e-15);
  }

  const at::Tensor leaf = logits.clone().requires_grad_(true);
  const Loss loss = language_model_loss(leaf * 1, data->targets());
  EXPECT_NEAR(loss.mean.item<double>(), reference["loss"].get<double>(), 1e-5);
  loss.mean.backward();
  EXPECT_TRUE(
      at::allclose(leaf.grad(), *read_safetensors(dir / "gradient.safetensors").find("logits"), 1e-5, 1e-8));
}

INSTANTIATE_TEST_SUITE_P(Kinds, AdamReference, testing::Values("adam", "adamw"),
                         [](const auto& kind) { return std::string(kind.param); });

}  // namespace
}  // namespace strait
