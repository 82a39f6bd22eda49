#include "strait/train/automatic_codecs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <thread>

#include "strait/base/clock.h"
#include "strait/train/placed_executor.h"
#include "tests/train/observer.h"
#include "tests/train/replicas.h"
#include "tests/train/tied_network.h"

namespace strait {
namespace {

/// A choice of the codec that there is, for all boundaries.
CodecChoice the_same_again(const ChoiceFacts& facts) {
  CodecChoice choice;
  for (const auto& channel : facts.channels) {
    if (channel.direction != Direction::gradient) continue;
    choice.boundaries.push_back({channel.boundary, {"none"}, {.codec = "quant:8", .relative_error = 0.01}});
  }
  return choice;
}

/// 20 samples in batches of two; choices come after four, eight and ten batches, and so on.
TrainerOptions chosen_options() {
  TrainerOptions options = test::tied_options(1, 0);
  options.batch_size = 2;
  options.compression.gradients = {std::string(kAutoCodec)};
  options.compression.automatic.ladder = {"quant:8"};
  return options;
}

/// What each choice knows of the first stage: of how many micro-batches.
std::vector<int64_t> micro_batches_of_choices(TrainerOptions options) {
  std::vector<int64_t> all;
  options.choose_codecs = [&](const ChoiceFacts& facts, Group&) {
    all.push_back(facts.stages.begin()->second.micro_batches);
    return the_same_again(facts);
  };
  Trainer trainer(test::tied_model(), options);
  TrainObserver observer;
  EXPECT_TRUE(trainer.train(test::tied_data(), observer));
  return all;
}

TEST(AutomaticCodecs, TheBatchThatWarmsUpCountsInNoChoice) {
  TrainerOptions options = chosen_options();
  options.train.epochs = 3;
  EXPECT_EQ(micro_batches_of_choices(options), (std::vector<int64_t>{3, 7, 9, 10}));
  options.train.epochs = 1;
  options.compression.automatic.every_steps = 1;
  options.train.accumulate = 4;
  EXPECT_EQ(micro_batches_of_choices(options), (std::vector<int64_t>{3, 7})) << "steps of four batches";
}

// Of 4 bits, whose errors are between 0.02 and 0.2, a little may be lost that cannot be seen.
TEST(AutomaticCodecs, CosinesThatAreNotKnownAreThoseOfTheErrors) {
  TrainerOptions options = chosen_options();
  options.train.epochs = 1;
  options.compression.automatic.ladder = {"none", "quant:8", "quant:4", "topk:0.1"};
  int channels = 0;
  options.choose_codecs = [&](const ChoiceFacts& facts, Group&) {
    for (const auto& channel : facts.channels) {
      if (channel.direction != Direction::gradient) continue;
      std::vector<double> cosines;
      for (const auto& trial : channel.trials) cosines.push_back(trial.cosine);
      EXPECT_EQ(cosines, (std::vector<double>{1, 1, 0.99, 0})) << channel.boundary;
      ++channels;
    }
    return the_same_again(facts);
  };
  Trainer trainer(test::tied_model(), options);
  TrainObserver observer;
  EXPECT_TRUE(trainer.train(test::tied_data(), observer));
  EXPECT_EQ(channels, 2 * 3) << "two choices, behind the fourth and the eighth batch";
}

TEST(AutomaticCodecs, LinksThatAreNoLimitHaveNoErrorsAtTheBeginning) {
  TrainerOptions options = chosen_options();
  options.train.epochs = 1;
  options.compression.automatic.ladder = {"none", "quant:8"};
  options.choose_codecs = [](const ChoiceFacts& facts, Group&) { return the_same_again(facts); };
  for (const bool no_limit : {false, true}) {
    options.links_are_no_limit = no_limit;
    Trainer trainer(test::tied_model(), options);
    test::Observer observer;
    EXPECT_TRUE(trainer.train(test::tied_data(), observer));
    const CodecChoice& first = observer.epochs.at(0).choices.at(0);
    EXPECT_EQ(first.step, 0U);
    for (const auto& boundary : first.boundaries)
      EXPECT_EQ(boundary.gradients.codec, no_limit ? "none" : "quant:8") << boundary.boundary;
  }
}

/// The first `end` batches of an epoch of 20, the first or the last of two, in which messages are kept for
/// cosines. The choice in use was made after `chosen` steps.
std::vector<int64_t> watched_batches(int epoch, uint64_t chosen, int64_t end) {
  constexpr int64_t kBatches = 20;
  TrainerOptions options = chosen_options();
  const CompressionOptions asked = options.compression;
  options.compression = with_strongest_codecs(asked);
  Placement placement(test::tied_model(), options.cuts, options.pipeline,
                      std::make_shared<SingleProcessGroup>());
  PlacedExecutor executor(placement, options, nullptr);
  AutomaticCodecs codecs(*executor, placement, asked,
                         [](const ChoiceFacts& facts, Group&) { return the_same_again(facts); });
  TrainingState state;
  state.epoch = epoch;
  state.choices.push_back({.step = chosen, .boundaries = {}, .watches_gradients = true});
  for (const auto& cut : options.cuts)
    state.choices[0].boundaries.push_back({cut, {"none"}, {.codec = "quant:8", .relative_error = 0.01}});
  codecs.begin(state);
  Receiver& receiver = *executor->boundaries().front().activations.receiver;
  std::vector<int64_t> watched;
  for (int64_t batch = 0; batch < end; ++batch) {
    state.batches = batch;
    state.step = static_cast<uint64_t>(epoch * kBatches + batch);
    codecs.before_batch(state, 1, kBatches, 2);
    executor->train({.inputs = {torch::randn({2, test::kClasses})},
                     .targets = torch::zeros({2}, torch::kLong),
                     .step = state.step,
                     .rows = 2},
                    true);
    if (!receiver.take_kept().empty()) watched.push_back(batch);
  }
  return watched;
}

TEST(AutomaticCodecs, TheEightBatchesBeforeAChoiceAreWatched) {
  EXPECT_EQ(watched_batches(0, 16, 20), (std::vector<int64_t>{12, 13, 14, 15, 16, 17, 18, 19}));
  EXPECT_EQ(watched_batches(1, 16, 12), (std::vector<int64_t>{4, 5, 6, 7, 8, 9, 10, 11}))
      << "twice as many steps are 32, after twelve batches";
  EXPECT_EQ(watched_batches(1, 20, 20), std::vector<int64_t>()) << "none is made behind the last";
  EXPECT_EQ(watched_batches(0, 4, 8), std::vector<int64_t>()) << "the first eight steps do not count";
}

// Each has samples of its own, and so sees other gradients.
TEST(AutomaticCodecs, WhatReplicasHaveSeenOfGradientsCountsTogether) {
  TrainerOptions options = chosen_options();
  options.batch_size = 8;  // a micro-batch of one sample says nothing
  options.train.epochs = 6;
  options.pipeline.micro_batches = 2;
  options.pipeline.replicas = 2;
  options.compression.automatic.ladder = {"none", "topk:0.3"};
  std::array<std::vector<double>, 2> cosines;
  options.choose_codecs = [&](const ChoiceFacts& facts, Group& group) {
    CodecChoice choice;
    choice.watches_gradients = true;
    for (const auto& channel : facts.channels) {
      if (channel.direction != Direction::gradient) continue;
      cosines.at(static_cast<size_t>(group.rank())).push_back(channel.trials.at(1).cosine);
      choice.boundaries.push_back({channel.boundary, {"none"}, {.codec = "none", .relative_error = 0}});
    }
    return choice;
  };
  test::train_replicas(2, test::tied_model, options, test::tied_data());
  EXPECT_THAT(cosines[0], testing::Contains(testing::AllOf(testing::Gt(0), testing::Lt(0.99))));
  EXPECT_EQ(cosines[0], cosines[1]);
}

/// Takes its time on the way back.
class SlowBack : public torch::autograd::Function<SlowBack> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) { return x.clone(); }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext*,
                                               torch::autograd::tensor_list gradients) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return {gradients[0]};
  }
};

class SlowLayer : public Layer {
 public:
  SlowLayer() : linear_(register_module("linear", torch::nn::Linear(test::kClasses, test::kClasses))) {}
  at::Tensor forward(const at::Tensor& x) override { return SlowBack::apply(linear_(x)); }

 private:
  torch::nn::Linear linear_;
};

TEST(AutomaticCodecs, TheDrainBeforeAChoiceCountsOnce) {
  TrainerOptions options = chosen_options();
  options.train.epochs = 1;
  options.train.evaluate_epochs = 2;
  options.pipeline.schedule = "pipedream";
  options.compression.automatic.every_steps = 1;  // a drain behind every batch
  options.cuts = {"a", "b", "c"};
  options.choose_codecs = [](const ChoiceFacts& facts, Group&) { return the_same_again(facts); };
  Model model;
  model.sample_shape = {test::kClasses};
  for (const char* name : {"a", "b", "c", "d"})
    model.layers.push_back({name, name, std::make_shared<SlowLayer>()});
  Trainer trainer(std::move(model), options);
  test::Observer observer;
  const Stopwatch watch;
  ASSERT_TRUE(trainer.train(test::tied_data(), observer));
  EXPECT_LE(observer.epochs.at(0).seconds, watch.seconds());
}

}  // namespace
}  // namespace strait
