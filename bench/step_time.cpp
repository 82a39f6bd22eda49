// The time of a training step of ResNet-18 with four stages in one process, against the unsplit network in
// the same run. Each codec takes turns with the baseline, because the machine's speed drifts.

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include "strait/models/model.h"
#include "strait/train/runtime.h"
#include "strait/train/trainer.h"

namespace strait {
namespace {

constexpr int kSteps = 10;
constexpr int kRounds = 9;
constexpr int64_t kBatch = 100;

/// Batches that cost nothing to make.
class OneBatch : public Dataset {
 public:
  explicit OneBatch(int64_t size)
      : size_(size), inputs_(torch::randn({kBatch, 3, 32, 32})), targets_(torch::randint(10, {kBatch})) {}
  int64_t size() const override { return size_; }
  Batch batch(std::span<const int64_t> ids, std::optional<uint64_t> /*key*/) const override {
    return {inputs_, targets_, {ids.begin(), ids.end()}};
  }

 private:
  int64_t size_;
  at::Tensor inputs_;
  at::Tensor targets_;
};

/// Stops training after one epoch, where the next call goes on.
struct OneEpoch : TrainObserver {
  void on_epoch(const EpochMetrics& metrics) override { step_seconds = metrics.seconds / kSteps; }
  bool should_stop() override { return step_seconds.has_value(); }
  std::optional<double> step_seconds;
};

struct Scheme {
  std::string name;
  std::vector<std::string> cuts;
  LinkOptions activations;
  LinkOptions gradients;
  bool reuse_indices = false;
  std::string store = "memory";
};

Trainer make(const Scheme& scheme, int width) {
  torch::manual_seed(1);
  TrainerOptions options;
  options.batch_size = kBatch;
  options.train.epochs = kRounds + 2;
  options.train.optimizer.lr = 1e-6;  // the numbers must stay tame, not get better
  options.compression.activations = scheme.activations;
  options.compression.gradients = scheme.gradients;
  options.compression.reuse_indices = scheme.reuse_indices;
  options.compression.store.place = scheme.store;
  options.cuts = scheme.cuts;
  return {make_model({"resnet18", width, scheme.cuts}, 10), options};
}

double step_seconds(Trainer& trainer, const DataSplits& data) {
  OneEpoch epoch;
  trainer.train(data, epoch);
  return epoch.step_seconds.value();
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

void compare(const Scheme& scheme, int width, const DataSplits& data) {
  Trainer whole = make({"unsplit", {}, {}, {}}, width);
  Trainer split = make(scheme, width);
  std::vector<double> whole_times;
  std::vector<double> split_times;
  std::vector<double> ratios;
  for (int round = -1; round < kRounds; ++round) {  // the first round warms up
    const double a = step_seconds(whole, data);
    const double b = step_seconds(split, data);
    if (round < 0) continue;
    whole_times.push_back(a);
    split_times.push_back(b);
    ratios.push_back(b / a);
  }
  fmt::print("{:<14} {:>12.1f} {:>14.1f} {:>10.3f}\n", scheme.name, 1e3 * median(whole_times),
             1e3 * median(split_times), median(ratios));
  std::fflush(stdout);
}

}  // namespace
}  // namespace strait

int main(int argc, char** argv) {
  using namespace strait;
  const int width = argc > 1 ? std::atoi(argv[1]) : 16;
  configure_runtime(0);
  fmt::print("ResNet-18 width {}, batch {}, {}\n{:<14} {:>12} {:>14} {:>10}\n", width, kBatch,
             machine_description(), "codecs", "unsplit ms", "four stages ms", "ratio");
  const DataSplits data{std::make_shared<OneBatch>(kSteps * kBatch), std::make_shared<OneBatch>(kBatch)};
  const std::vector<std::string> cuts = {"layer1", "layer2", "layer3"};
  const LinkOptions topk{"topk:0.1", "none"};
  const auto with = [](const char* feedback) { return LinkOptions{"topk:0.1", feedback}; };
  for (const Scheme& scheme : {Scheme{"none", cuts, {}, {}},
                               {"fp16", cuts, {"fp16", "none"}, {"fp16", "none"}},
                               {"fw4-bw8", cuts, {"quant:4", "none"}, {"quant:8", "none"}},
                               {"topk-10", cuts, topk, topk},
                               {"topk-10 reuse", cuts, topk, topk, true},
                               {"ef", cuts, with("ef"), with("ef")},
                               {"ef21", cuts, with("ef21"), with("ef21")},
                               {"ef-mixed", cuts, with("ef-mixed"), with("ef-mixed")},
                               {"aq-sgd", cuts, with("aq-sgd"), topk},
                               {"aq-sgd, file", cuts, with("aq-sgd"), topk, false, "file"}}) {
    compare(scheme, width, data);
  }
}
