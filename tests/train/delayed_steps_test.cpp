// Schedules that step after every micro-batch, against plain loops that keep old weights.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "strait/train/micro_batch_update.h"
#include "tests/support/errors.h"
#include "tests/train/delayed_network.h"
#include "tests/train/token_training.h"

namespace strait {
namespace {

using test::dense_data;
using test::dense_model;
using test::dense_options;
using test::kDenseStages;
using testing::HasSubstr;

/// A stage's weights after some number of steps, with what the optimizer kept then.
struct Version {
  at::Tensor weight;
  at::Tensor bias;
  at::Tensor weight_direction;  ///< not defined before the first step
  at::Tensor bias_direction;
};

/// The stages' weights over an epoch and the sum of its losses.
struct Reference {
  std::vector<std::vector<Version>> versions;  ///< of each stage, the newest last
  std::vector<double> losses;                  ///< of each epoch, the mean over its samples
};

/// Steps after which stage `stage` takes in the epoch's micro-batch `number`.
size_t version_at(int stage, int number) {
  return static_cast<size_t>(std::max(0, number - (kDenseStages - 1 - stage)));
}

/// Changes a parameter at a rate and gives the direction; each parameter has an object of its own.
using Rule = std::function<at::Tensor(at::Tensor& parameter, at::Tensor gradient, double rate)>;

/// torch.optim.SGD with momentum and weight decay.
Rule sgd(const OptimizerOptions& options) {
  return [options, buffer = at::Tensor()](at::Tensor& parameter, at::Tensor gradient, double rate) mutable {
    gradient = gradient.add(parameter, options.weight_decay);
    buffer = buffer.defined() ? buffer.mul(options.momentum).add(gradient) : gradient;
    parameter = parameter.add(buffer, -rate);
    return buffer;
  };
}

/// Algorithm 1 of Kingma and Ba 2015; the weights' decay is part of the gradient with adam, and apart from it
/// with adamw (Loshchilov and Hutter 2019).
Rule adam(const OptimizerOptions& options) {
  return [options, mean = at::Tensor(), square = at::Tensor(), steps = 0](
             at::Tensor& parameter, at::Tensor gradient, double rate) mutable {
    if (options.kind == "adamw") {
      parameter = parameter * (1 - rate * options.weight_decay);
    } else {
      gradient = gradient + options.weight_decay * parameter;
    }
    const double b1 = options.betas[0];
    const double b2 = options.betas[1];
    if (++steps == 1) mean = square = at::zeros_like(parameter);
    mean = b1 * mean + (1 - b1) * gradient;
    square = b2 * square + (1 - b2) * gradient * gradient;
    const at::Tensor direction =
        mean / (1 - std::pow(b1, steps)) / ((square / (1 - std::pow(b2, steps))).sqrt() + options.eps);
    parameter = parameter - rate * direction;
    return direction;
  };
}

/// What a micro-batch gives: its mean loss and of every stage the gradients of weight and bias. `number` counts
/// the epoch's micro-batches, `rate_of` says the rate of one of its steps.
struct Passes {
  double loss = 0;
  std::vector<std::pair<at::Tensor, at::Tensor>> gradients;
};
using RateOf = std::function<double(size_t step)>;
using Micro = std::function<Passes(const Reference& reference, int number, const at::Tensor& inputs,
                                   const at::Tensor& targets, const RateOf& rate_of)>;

/// A pass over the micro-batches of all epochs, one after another; at an epoch's end nothing is under way.
Reference train_plainly(const TrainerOptions& options, const Micro& micro,
                        const std::function<Rule()>& make_rule, double clip_norm = 0) {
  Reference reference;
  const Model model = dense_model();
  std::vector<std::pair<Rule, Rule>> rules;
  for (const auto& layer : model.layers) {
    const auto parameters = layer.layer->parameters();
    reference.versions.push_back({{parameters[0].detach(), parameters[1].detach(), {}, {}}});
    rules.emplace_back(make_rule(), make_rule());
  }
  const auto data = dense_data().train;
  const int64_t rows =
      (options.batch_size + options.pipeline.micro_batches - 1) / options.pipeline.micro_batches;
  const int64_t steps = 3 * ((6 + rows - 1) / rows) + (4 + rows - 1) / rows;
  for (int epoch = 0; epoch < options.train.epochs; ++epoch) {
    const RateOf rate_of = [&](size_t step) {
      return learning_rate(options.train.schedule, options.train.optimizer.lr,
                           {.epoch = epoch,
                            .step = epoch * steps + static_cast<int64_t>(step),
                            .all_steps = options.train.epochs * steps});
    };
    for (auto& versions : reference.versions) versions = {versions.back()};
    double& sum = reference.losses.emplace_back(0);
    int number = 0;
    Loader loader(data, {.order = epoch_order(options.seed, epoch, data->size()),
                         .batch_size = options.batch_size,
                         .augmentation_key = augmentation_key(options.seed, epoch)});
    while (const auto batch = loader.next()) {
      for (int64_t row = 0; row < batch->targets.size(0); row += rows, ++number) {
        const int64_t count = std::min(rows, batch->targets.size(0) - row);
        Passes passes = micro(reference, number, batch->inputs.narrow(0, row, count),
                              batch->targets.narrow(0, row, count), rate_of);
        sum += passes.loss * static_cast<double>(count);
        for (size_t stage = 0; stage < kDenseStages; ++stage) {
          Version next = reference.versions[stage].back();
          auto& [weight, bias] = passes.gradients[stage];
          const double norm =
              std::sqrt(std::pow(weight.norm().item<double>(), 2) + std::pow(bias.norm().item<double>(), 2));
          if (clip_norm > 0 && norm > clip_norm) {
            weight = weight * (clip_norm / norm);
            bias = bias * (clip_norm / norm);
          }
          const double rate = rate_of(static_cast<size_t>(number));
          next.weight_direction = rules[stage].first(next.weight, weight, rate);
          next.bias_direction = rules[stage].second(next.bias, bias, rate);
          reference.versions[stage].push_back(next);
        }
      }
    }
    sum /= static_cast<double>(data->size());
  }
  return reference;
}

/// PipeDream's passes: autograd through the whole network, of which every stage has the weights that it had
/// when it took the micro-batch in.
Passes stashed(const Reference& reference, int number, const at::Tensor& inputs, const at::Tensor& targets,
               const RateOf& /*rate_of*/) {
  std::vector<at::Tensor> leaves;
  at::Tensor x = inputs;
  for (int stage = 0; stage < kDenseStages; ++stage) {
    const Version& version = reference.versions[static_cast<size_t>(stage)][version_at(stage, number)];
    const at::Tensor weight = version.weight.clone().requires_grad_(true);
    const at::Tensor bias = version.bias.clone().requires_grad_(true);
    leaves.insert(leaves.end(), {weight, bias});
    x = torch::nn::functional::linear(x, weight, bias);
    if (stage + 1 < kDenseStages) x = x.tanh();
  }
  const at::Tensor loss = torch::nn::functional::cross_entropy(x, targets);
  const auto gradients = torch::autograd::grad({loss}, leaves);
  Passes passes{.loss = loss.item<double>(), .gradients = {}};
  for (size_t i = 0; i < gradients.size(); i += 2)
    passes.gradients.emplace_back(gradients[i], gradients[i + 1]);
  return passes;
}

/// XPipe's passes, with the chain rule by hand: activations of predicted weights, and the newest weights for
/// the way back. Before its backward pass a stage has made as many steps as there were micro-batches before.
Passes predicted(const Reference& reference, int number, const at::Tensor& inputs, const at::Tensor& targets,
                 const RateOf& rate_of) {
  std::vector<at::Tensor> x = {inputs};
  for (int stage = 0; stage < kDenseStages; ++stage) {
    const size_t at = version_at(stage, number);
    const Version& version = reference.versions[static_cast<size_t>(stage)][at];
    const double distance = rate_of(at) * static_cast<double>(static_cast<size_t>(number) - at);
    const bool knows = version.weight_direction.defined();
    const at::Tensor weight = knows ? version.weight - distance * version.weight_direction : version.weight;
    const at::Tensor bias = knows ? version.bias - distance * version.bias_direction : version.bias;
    const at::Tensor z = at::matmul(x.back(), weight.t()) + bias;
    x.push_back(stage + 1 < kDenseStages ? z.tanh() : z);
  }
  const auto rows = static_cast<double>(targets.size(0));
  const at::Tensor right = torch::one_hot(targets, test::kAnswers).to(at::kFloat);
  Passes passes{.loss = -(x.back().log_softmax(1) * right).sum().item<double>() / rows, .gradients = {}};
  at::Tensor back = (x.back().softmax(1) - right) / rows;
  passes.gradients.resize(kDenseStages);
  for (size_t stage = kDenseStages; stage-- > 0;) {
    if (stage + 1 < kDenseStages) back = back * (1 - x[stage + 1] * x[stage + 1]);
    passes.gradients[stage] = {at::matmul(back.t(), x[stage]), back.sum(0)};
    back = at::matmul(back, reference.versions[stage][static_cast<size_t>(number)].weight);
  }
  return passes;
}

struct DelayedOutcome {
  test::State state;
  std::vector<EpochMetrics> epochs;
};

DelayedOutcome train_in_stages(const TrainerOptions& options, Model model = dense_model()) {
  Trainer trainer(std::move(model), options);
  test::Observer observer;
  EXPECT_TRUE(trainer.train(dense_data(), observer));
  return {test::copy_of(trainer.collect_model()), observer.epochs};
}

void expect_close(const DelayedOutcome& trained, const Reference& reference, double tolerance) {
  for (size_t stage = 0; stage < kDenseStages; ++stage) {
    const Version& last = reference.versions[stage].back();
    const auto& [weight, bias] =
        std::pair(trained.state[2 * stage].second, trained.state[2 * stage + 1].second);
    EXPECT_LE((weight - last.weight).abs().max().item<double>(), tolerance) << "stage " << stage;
    EXPECT_LE((bias - last.bias).abs().max().item<double>(), tolerance) << "stage " << stage;
  }
  ASSERT_EQ(trained.epochs.size(), reference.losses.size());
  for (size_t epoch = 0; epoch < reference.losses.size(); ++epoch) {
    EXPECT_NEAR(trained.epochs[epoch].train.loss, reference.losses[epoch], tolerance);
  }
}

TEST(PipeDream, IsDelayedSgdBitForBit) {
  for (const int micro_batches : {1, 2, 4, 6}) {
    const TrainerOptions options = dense_options("pipedream", micro_batches);
    const auto rule = [&] { return sgd(options.train.optimizer); };
    expect_close(train_in_stages(options), train_plainly(options, stashed, rule), 0);
  }
}

TEST(PipeDream, IsDelayedAdamWithEveryStageClippedByItself) {
  TrainerOptions options = dense_options("pipedream", 2);
  options.train.optimizer = {.kind = "adam", .lr = 0.02, .weight_decay = 0.1};
  options.train.clip_norm = 0.1;
  const auto rule = [&] { return adam(options.train.optimizer); };
  expect_close(train_in_stages(options), train_plainly(options, stashed, rule, 0.1), 1e-5);
}

TEST(XPipe, GoesForwardOnWeightsPredictedByMomentum) {
  for (const int micro_batches : {1, 3}) {
    const TrainerOptions options = dense_options("xpipe", micro_batches);
    const auto rule = [&] { return sgd(options.train.optimizer); };
    expect_close(train_in_stages(options), train_plainly(options, predicted, rule), 1e-6);
  }
}

TEST(XPipe, GoesForwardOnWeightsPredictedByAdam) {
  for (const char* kind : {"adam", "adamw"}) {
    TrainerOptions options = dense_options("xpipe", 2);
    options.train.optimizer = {.kind = kind, .lr = 0.02, .weight_decay = 0.1};
    const auto rule = [&] { return adam(options.train.optimizer); };
    expect_close(train_in_stages(options), train_plainly(options, predicted, rule), 1e-5);
  }
}

/// Every micro-batch is a batch of its own: dropout, the schedule of rates and clipping included.
TEST(StepsPerMicroBatch, OneStageIsPlainTrainingBitForBit) {
  for (const char* kind : {"sgd", "adamw"}) {
    TrainerOptions options = test::token_options();
    options.train.optimizer.kind = kind;
    options.cuts = {};
    options.batch_size = 2;
    const test::Trained plain = test::trained(options, /*drops=*/true);
    for (const char* schedule : {"pipedream", "xpipe"}) {
      options.batch_size = 6;
      options.pipeline = {.schedule = schedule, .micro_batches = 3};
      const test::Trained parts = test::trained(options, /*drops=*/true);
      test::expect_equal(parts.state, plain.state);
      for (size_t epoch = 0; epoch < 2; ++epoch) {
        EXPECT_EQ(parts.epochs[epoch].steps, 11);
        EXPECT_EQ(parts.epochs[epoch].train.loss, plain.epochs[epoch].train.loss);
        EXPECT_EQ(parts.epochs[epoch].test->off.loss, plain.epochs[epoch].test->off.loss);
      }
    }
  }
}

TEST(StepsPerMicroBatch, TiesWithinAStageAreOneParameter) {
  TrainerOptions options = test::tied_options(1, 0.5);
  options.compression = {};
  options.cuts = {};
  options.batch_size = 2;
  const test::State plain = test::tied_state_after(options);
  options.batch_size = 4;
  options.pipeline = {.schedule = "pipedream", .micro_batches = 2};
  test::expect_equal(test::tied_state_after(options), plain);
}

TEST(StepsPerMicroBatch, AnEvaluationDrainsAndComesAtItsSteps) {
  TrainerOptions options = dense_options("pipedream", 3);
  options.train.evaluate_every = 5;  // of 11 steps an epoch, in batches of 3 and at last 2
  const DelayedOutcome got = train_in_stages(options);
  std::vector<uint64_t> steps;
  for (const auto& epoch : got.epochs) {
    for (const auto& evaluation : epoch.evaluations) steps.push_back(evaluation.step);
  }
  EXPECT_EQ(steps, (std::vector<uint64_t>{6, 11, 17, 20}))
      << "behind the batch that has the fifth, tenth, ... step";

  test::Observer stopper(/*stop_after=*/1);  // during the second batch, which is the sixth step
  Trainer stopped(dense_model(), options);
  ASSERT_FALSE(stopped.train(dense_data(), stopper));
  ASSERT_EQ(stopped.state().step, 6U);
  test::Observer quiet;
  EXPECT_EQ(stopped.evaluate(dense_data().test, quiet).off.loss, got.epochs[0].evaluations[0].test.off.loss);
}

std::string complaint(const TrainerOptions& options, Model model = dense_model()) {
  return test::error_of<InputError>([&] { Trainer(std::move(model), options); });
}

TEST(StepsPerMicroBatch, WhatDoesNotGoTogetherIsRefused) {
  TrainerOptions options = dense_options("pipedream", 2);
  options.train.accumulate = 2;
  EXPECT_EQ(
      complaint(options),
      "train.accumulate: expected 1 with schedule \"pipedream\", which steps after every micro-batch, found 2");
  options = test::tied_options(2, 0);
  options.pipeline.schedule = "xpipe";
  EXPECT_THAT(complaint(options, test::tied_model()),
              HasSubstr("tied parameters are expected in one stage; embed.weight and head.weight are in two"));
  options = dense_options("xpipe", 2);
  options.optimizer = [](const std::vector<at::Tensor>& parameters) {
    return std::make_unique<Optimizer>(
        std::make_unique<torch::optim::SGD>(parameters, torch::optim::SGDOptions(0.1)),
        OptimizerState{.names = {}, .take = {}, .make = {}});
  };
  EXPECT_THAT(complaint(options), HasSubstr("\"xpipe\" predicts weights"));
  options.pipeline.schedule = "pipedream";
  EXPECT_EQ(complaint(options), "");
}

TEST(StepPlan, WhereEveryMicroBatchIsAStep) {
  const auto plan = [](int64_t samples, int micro_batches) {
    return StepPlan(samples, /*batch_size=*/10, {}, {.schedule = "pipedream", .micro_batches = micro_batches});
  };
  EXPECT_EQ(plan(27, 4).steps(), 4 + 4 + 3) << "3, 3, 3 and 1 samples; 3, 3 and 1 of the last batch";
  EXPECT_EQ(plan(27, 4).steps_of(1), 4);
  EXPECT_EQ(plan(27, 4).part(1, 0).steps, 4);
  EXPECT_EQ(plan(27, 4).part(2, 0).steps, 3);
  EXPECT_EQ(plan(27, 4).samples_of_step(), 3);
  EXPECT_EQ(plan(30, 5).steps(), 15);
  EXPECT_EQ(plan(5, 3).steps(), 2);
}

TEST(StepPlan, CountsTheStepsOfTheBatchesThatEveryReplicaIsIn) {
  const auto steps = [](int64_t samples, int replicas, int accumulate) {
    return StepPlan(samples, /*batch_size=*/20, replicas, accumulate).steps();
  };
  EXPECT_EQ(steps(100, 1, 1), 5);
  EXPECT_EQ(steps(101, 1, 1), 6) << "a last batch with a single sample";
  EXPECT_EQ(steps(101, 2, 1), 5) << "which is too few for two replicas";
  EXPECT_EQ(steps(102, 2, 1), 6);
  EXPECT_EQ(steps(101, 1, 4), 2);
}

}  // namespace
}  // namespace strait
