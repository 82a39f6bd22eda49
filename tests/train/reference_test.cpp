// Training held against an independent implementation in python3-torch.

#include <gtest/gtest.h>

#include <torch/torch.h>
#include <nlohmann/json.hpp>

#include "strait/formats/safetensors.h"
#include "strait/models/resnet18.h"
#include "strait/train/run_folder.h"
#include "strait/train/runtime.h"
#include "strait/train/trainer.h"
#include "tests/support/python.h"
#include "tests/support/temp_dir.h"
#include "tests/train/fixed_dataset.h"

namespace strait {
namespace {

using nlohmann::json;

constexpr int64_t kSamples = 84;  // the last of 11 batches is short

struct Scheme {
  LinkOptions activations;
  LinkOptions gradients;
  bool reuse_indices = false;
  int start_epoch = 0;
  const char* fill = "first_visit";
};

TrainerOptions options_of(const Scheme& scheme) {
  TrainerOptions options;
  options.seed = 5;
  options.batch_size = 8;
  options.train.epochs = 2;
  options.train.optimizer.lr = 0.05;
  options.train.schedule.t_max = 4;
  options.train.threads = 1;
  options.compression.activations = scheme.activations;
  options.compression.gradients = scheme.gradients;
  options.compression.reuse_indices = scheme.reuse_indices;
  options.compression.start_epoch = scheme.start_epoch;
  options.compression.store.fill = scheme.fill;
  options.cuts = {"layer1", "layer2", "layer3"};
  return options;
}

json config_of(const TrainerOptions& options) {
  const auto& optimizer = options.train.optimizer;
  return {{"width", 4},
          {"threads", options.train.threads},
          {"activations", options.compression.activations.codec},
          {"activation_feedback", options.compression.activations.feedback},
          {"gradients", options.compression.gradients.codec},
          {"gradient_feedback", options.compression.gradients.feedback},
          {"reuse_indices", options.compression.reuse_indices},
          {"start_epoch", options.compression.start_epoch},
          {"fill", options.compression.store.fill},
          {"lr", optimizer.lr},
          {"momentum", optimizer.momentum},
          {"weight_decay", optimizer.weight_decay},
          {"t_max", options.train.schedule.t_max},
          {"epochs", options.train.epochs},
          {"batch_size", options.batch_size}};
}

/// Turns the running means of an epoch back into one loss a step.
class StepLosses : public TrainObserver {
 public:
  void on_batch(int /*epoch*/, const char* phase, int64_t done, int64_t /*total*/, double mean_loss) override {
    if (std::string(phase) != "train") return;
    if (done <= done_) sum_ = done_ = 0;
    const double sum = mean_loss * static_cast<double>(done);
    losses.push_back((sum - sum_) / static_cast<double>(done - done_));
    sum_ = sum;
    done_ = done;
  }
  std::vector<double> losses;

 private:
  double sum_ = 0;
  int64_t done_ = 0;
};

class TrainReference : public testing::TestWithParam<Scheme> {};

TEST_P(TrainReference, LossesAndScoresEqualPyTorchs) {
  const test::TempDir dir;
  const TrainerOptions options = options_of(GetParam());
  configure_runtime(options.train.threads);
  torch::manual_seed(3);
  Model model = make_resnet18(4, 10);
  write_safetensors(dir / "init.safetensors", {model.state(), {}});
  const auto data =
      std::make_shared<test::FixedDataset>(torch::randn({kSamples, 3, 32, 32}), torch::randint(10, {kSamples}));
  TensorFile file{{{"inputs", data->inputs()}, {"targets", data->targets()}}, {}};
  for (int epoch = 0; epoch < options.train.epochs; ++epoch) {
    file.tensors.emplace_back("order." + std::to_string(epoch),
                              torch::tensor(epoch_order(options.seed, epoch, kSamples)));
  }
  write_safetensors(dir / "data.safetensors", file);
  test::write_file(dir / "config.json", config_of(options).dump());

  Trainer trainer(std::move(model), options);
  StepLosses observer;
  ASSERT_TRUE(trainer.train({data, data}, observer));
  const Evaluation scores = trainer.evaluate(data, observer);

  const json reference = json::parse(test::run_torch_python("train_reference.py", dir.path().string()));
  const auto losses = reference["losses"].get<std::vector<double>>();
  ASSERT_EQ(observer.losses.size(), 22U);
  ASSERT_EQ(losses.size(), observer.losses.size());
  for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(observer.losses[i], losses[i], 1e-4) << "step " << i;
  EXPECT_NEAR(scores.off.loss, reference["off"]["loss"].get<double>(), 1e-3);
  EXPECT_NEAR(scores.on.loss, reference["on"]["loss"].get<double>(), 1e-3);
  EXPECT_NEAR(scores.off.at(kAccuracy), reference["off"]["accuracy"].get<double>(), 1.3);
  EXPECT_NEAR(scores.on.at(kAccuracy), reference["on"]["accuracy"].get<double>(), 1.3);
  EXPECT_EQ(scores.samples, kSamples);

  // What Python wrote loads here under the same names.
  Model trained = make_resnet18(4, 10);
  load_model(dir / "trained.safetensors", trained);
  const auto ours = trainer.collect_model().state();
  const auto theirs = trained.state();
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_TRUE(at::allclose(ours[i].second, theirs[i].second, 1e-2, 1e-3)) << ours[i].first;
  }
}

INSTANTIATE_TEST_SUITE_P(Schemes, TrainReference,
                         testing::Values(Scheme{}, Scheme{{"quant:4"}, {"quant:8"}},
                                         Scheme{{"topk:0.1"}, {"topk:0.1"}},
                                         Scheme{{"topk:0.1", "ef"}, {"topk:0.2", "ef"}},
                                         Scheme{{"topk:0.1", "ef21"}, {"topk:0.2", "ef21"}},
                                         Scheme{{"quant:4", "ef"}, {"quant:8", "ef21"}},
                                         Scheme{{"topk:0.2", "aq-sgd"}, {"topk:0.2"}},
                                         Scheme{{"topk:0.2", "aq-sgd"}, {"topk:0.2"}, false, 1, "warmup"},
                                         Scheme{{"topk:0.2"}, {"topk:0.2"}, true},
                                         Scheme{{"topk:0.3", "ef"}, {"topk:0.3"}, true}),
                         [](const auto& info) { return "case" + std::to_string(info.index); });

}  // namespace
}  // namespace strait
