// The time of a training step of ResNet-18 with four stages in one process, against the unsplit network and
// against four stages without codecs in the same run, which are verified to have the same loss, bit for bit.

#include <ATen/Context.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "strait/base/error.h"
#include "strait/base/times.h"
#include "strait/codecs/sparsifier.h"
#include "strait/links/link.h"
#include "strait/models/model.h"
#include "strait/models/resnet18.h"
#include "strait/train/runtime.h"
#include "strait/train/trainer.h"

namespace strait {
namespace {

constexpr int kRounds = 9;
constexpr int64_t kBatch = 100;

/// Batches that cost nothing to make.
class OneBatch : public Dataset {
 public:
  explicit OneBatch(int64_t size)
      : size_(size), inputs_(at::randn({kBatch, 3, 32, 32})), targets_(at::randint(10, {kBatch})) {}
  int64_t size() const override { return size_; }
  Batch batch(std::span<const int64_t> ids, std::optional<uint64_t> /*key*/) const override {
    return {inputs_, targets_, {ids.begin(), ids.end()}};
  }

 private:
  int64_t size_;
  at::Tensor inputs_;
  at::Tensor targets_;
};

/// Steps of an epoch: a second or more.
int64_t steps_at(int width) { return std::max(1, 160 / width); }

/// Stops training after one epoch, where the next call resumes.
struct OneEpoch : TrainObserver {
  void on_epoch(const EpochMetrics& metrics) override { epoch = metrics; }
  bool should_stop() override { return epoch.has_value(); }
  std::optional<EpochMetrics> epoch;
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
  at::manual_seed(1);
  TrainerOptions options;
  options.batch_size = kBatch;
  options.train.epochs = kRounds + 2;
  options.train.optimizer.lr = 1e-6;  // the numbers must stay tame, not get better
  options.compression.activations = scheme.activations;
  options.compression.gradients = scheme.gradients;
  options.compression.reuse_indices = scheme.reuse_indices;
  options.compression.store.place = scheme.store;
  options.cuts = scheme.cuts;
  return {make_resnet18(width, 10), options};
}

EpochMetrics train_epoch(Trainer& trainer, const DataSplits& data) {
  OneEpoch one;
  trainer.train(data, one);
  return std::move(one.epoch).value();
}

double step_seconds(const EpochMetrics& epoch) { return epoch.seconds / static_cast<double>(epoch.steps); }

/// Each of these trains in turn, because the machine's speed drifts.
void compare(const Scheme& scheme, int width, const DataSplits& data) {
  Trainer whole = make({"unsplit", {}, {}, {}}, width);
  Trainer raw = make({"uncompressed", scheme.cuts, {}, {}}, width);
  Trainer split = make(scheme, width);
  std::vector<double> whole_times;
  std::vector<double> split_times;
  std::vector<double> to_whole;
  std::vector<double> to_raw;
  for (int round = -1; round < kRounds; ++round) {  // the first round warms up
    const EpochMetrics of_whole = train_epoch(whole, data);
    const EpochMetrics of_raw = train_epoch(raw, data);
    const EpochMetrics of_split = train_epoch(split, data);
    STRAIT_CHECK(of_whole.train.loss == of_raw.train.loss,
                 "the loss is {} unsplit and {} in stages without codecs", of_whole.train.loss,
                 of_raw.train.loss);
    if (round < 0) continue;
    const double a = step_seconds(of_whole);
    const double b = step_seconds(of_raw);
    const double c = step_seconds(of_split);
    whole_times.push_back(a);
    split_times.push_back(c);
    to_whole.push_back(c / a);
    to_raw.push_back(c / b);
  }
  fmt::print("{:<24} {:>12.1f} {:>14.1f} {:>12.3f} {:>9.3f}\n", scheme.name, 1e3 * median(whole_times),
             1e3 * median(split_times), median(to_whole), median(to_raw));
  std::fflush(stdout);
}

/// The schemes that are worth a look, and around the first codec of them that selects: index reuse, and every
/// feedback that boundaries can have.
std::vector<Scheme> all_schemes() {
  const std::vector<std::string> cuts = {"layer1", "layer2", "layer3"};
  const auto plain = [](std::string_view codec) {
    return LinkOptions{std::string(codec), std::string(kNoFeedback)};
  };
  std::vector<Scheme> all;
  for (const auto& [activations, gradients] : scheme_list()) {
    const bool same = activations == gradients;
    all.push_back({same ? std::string(activations) : fmt::format("{}/{}", activations, gradients), cuts,
                   plain(activations), plain(gradients)});
  }
  const auto selecting = std::ranges::find_if(scheme_list(), [](const auto& scheme) {
    return make_codec(scheme.activations)->sparsifier() != nullptr;
  });
  const LinkOptions codec = plain(selecting->activations);
  all.push_back({codec.codec + " reused", cuts, codec, codec, true});
  for (const auto& feedback : link_samples()) {
    if (feedback == kNoFeedback) continue;
    const LinkOptions with{codec.codec, feedback};
    const auto link = make_link(with.codec, with.feedback);
    if (link->needs_previous()) continue;
    const LinkOptions& back = link->serves_gradients() ? with : codec;
    all.push_back({codec.codec + "+" + feedback, cuts, with, back});
    if (link->store() == nullptr) continue;
    all.push_back({codec.codec + "+" + feedback + " file", cuts, with, back, false, "file"});
  }
  return all;
}

}  // namespace
}  // namespace strait

/// bench_step_time [width [scheme]...]: by default all schemes at width 16.
int main(int argc, char** argv) {
  using namespace strait;
  const int width = argc > 1 ? std::atoi(argv[1]) : 16;
  if (width < 1) {
    fmt::print(stderr, "bench_step_time: expected a width, found {}\n", argv[1]);
    return 2;
  }
  configure_runtime(0);
  const auto schemes = all_schemes();
  const std::vector<std::string> wanted(argv + std::min(argc, 2), argv + argc);
  std::vector<std::string> names;
  for (const Scheme& scheme : schemes) names.push_back(scheme.name);
  for (const auto& name : wanted) {
    if (std::ranges::count(names, name) > 0) continue;
    fmt::print(stderr, "bench_step_time: there is no scheme {}; expected one of: {}\n", name,
               fmt::join(names, ", "));
    return 2;
  }
  fmt::print("ResNet-18 width {}, batch {}, {}\n{:<24} {:>12} {:>14} {:>12} {:>9}\n", width, kBatch,
             machine_description(at::kCPU), "codecs", "unsplit ms", "four stages ms", "to unsplit", "to none");
  const int64_t steps = steps_at(width);
  const DataSplits data{std::make_shared<OneBatch>(steps * kBatch), std::make_shared<OneBatch>(kBatch)};
  for (const Scheme& scheme : schemes) {
    if (wanted.empty() || std::ranges::count(wanted, scheme.name) > 0) compare(scheme, width, data);
  }
}
