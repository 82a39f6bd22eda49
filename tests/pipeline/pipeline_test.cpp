#include "strait/pipeline/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/pipeline/own_network.h"
#include "tests/support/errors.h"

namespace strait {
namespace {

using test::mean_square;
using test::message_of;
using test::own_boundaries;
using test::OwnBatch;
using test::OwnNetwork;
using testing::HasSubstr;

PipelineSetup setup_of(OwnNetwork& network, const std::string& codec = "none",
                       const std::string& feedback = "none") {
  PipelineSetup setup;
  setup.stages = network.stages();
  setup.boundaries = own_boundaries(codec, feedback);
  setup.loss = mean_square;
  return setup;
}

TEST(Pipeline, WithoutCompressionIsTheUnsplitNetworkBitForBit) {
  OwnNetwork split;
  OwnNetwork whole;
  Pipeline pipeline(setup_of(split));
  torch::optim::SGD split_optimizer(pipeline.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  torch::optim::SGD whole_optimizer(whole.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (uint64_t step = 0; step < 5; ++step) {
    const OwnBatch batch(step);
    split_optimizer.zero_grad();
    const StepReport report = pipeline.train(batch.inputs, batch.targets);
    split_optimizer.step();

    whole_optimizer.zero_grad();
    const at::Tensor loss = mean_square(whole(batch.inputs), batch.targets);
    loss.backward();
    whole_optimizer.step();
    EXPECT_EQ(report.loss, loss.item<double>());
    EXPECT_EQ(report.rows, 12);
    // Three cuts of 16 + 4, 12 and 8 floats a row, there and back.
    EXPECT_EQ(report.traffic.raw_bytes, 2U * 12 * (20 + 12 + 8) * sizeof(float));
    EXPECT_EQ(report.traffic.messages, 8U);
  }
  const auto mine = split.parameters();
  const auto theirs = whole.parameters();
  for (size_t i = 0; i < mine.size(); ++i) EXPECT_TRUE(at::equal(mine[i], theirs[i])) << i;
}

TEST(Pipeline, AccumulatesTheMeanOverMicroBatches) {
  OwnNetwork split;
  OwnNetwork whole;
  PipelineSetup setup = setup_of(split);
  setup.micro_batches = 5;  // of 3, 3, 3, 3 rows
  Pipeline pipeline(std::move(setup));
  const OwnBatch batch(0);
  const StepReport report = pipeline.train(batch.inputs, batch.targets);
  const at::Tensor loss = mean_square(whole(batch.inputs), batch.targets);
  loss.backward();
  EXPECT_NEAR(report.loss.value(), loss.item<double>(), 1e-6);
  const auto mine = split.parameters();
  const auto theirs = whole.parameters();
  for (size_t i = 0; i < mine.size(); ++i)
    EXPECT_TRUE(at::allclose(mine[i].grad(), theirs[i].grad(), 1e-4, 1e-6)) << i;
}

TEST(Pipeline, CompressesEveryTensorOfACut) {
  OwnNetwork network;
  Pipeline pipeline(setup_of(network, "topk:0.25", "ef21"));
  const OwnBatch batch(0);
  const StepReport report = pipeline.train(batch.inputs, batch.targets);
  EXPECT_LT(report.traffic.wire_bytes, report.traffic.raw_bytes);
  std::vector<std::string> names;
  for (const auto& boundary : pipeline.boundaries()) names.push_back(boundary.name);
  EXPECT_THAT(names, testing::ElementsAre("stem.0", "stem.1", "join", "body"));
  pipeline.compress(false);
  EXPECT_GT(pipeline.train(batch.inputs, batch.targets).traffic.wire_bytes, report.traffic.raw_bytes);
}

TEST(Pipeline, EvaluatesWithoutGradientsAndTraffic) {
  OwnNetwork network;
  Pipeline pipeline(setup_of(network));
  const OwnBatch batch(0);
  const StepReport report = pipeline.evaluate(batch.inputs, batch.targets);
  const at::NoGradGuard no_grad;
  EXPECT_EQ(report.loss, mean_square(network(batch.inputs), batch.targets).item<double>());
  EXPECT_EQ(report.traffic.messages, 0U);
  for (const auto& parameter : network.parameters()) EXPECT_FALSE(parameter.grad().defined());
}

TEST(Pipeline, PredictsWhatTheNetworkGives) {
  OwnNetwork network;
  PipelineSetup setup = setup_of(network);
  setup.micro_batches = 5;
  Pipeline pipeline(std::move(setup));
  const OwnBatch batch(0);
  const TensorList predicted = pipeline.predict({batch.inputs});
  const at::NoGradGuard no_grad;
  ASSERT_EQ(predicted.size(), 1U);
  EXPECT_TRUE(at::allclose(predicted.front(), network(batch.inputs)));
  EXPECT_EQ(pipeline.evaluate(batch.inputs, batch.targets).rows, 12);  // which has its loss again
  setup = setup_of(network);
  setup.micro_batches = 5;
  setup.loss = LossModule();
  EXPECT_TRUE(at::equal(Pipeline(std::move(setup)).predict({batch.inputs}).front(), predicted.front()));
}

TEST(Pipeline, ClipsByTheNormOverAllStages) {
  OwnNetwork split;
  OwnNetwork whole;
  Pipeline pipeline(setup_of(split));
  const OwnBatch batch(0);
  pipeline.train(batch.inputs, batch.targets);
  mean_square(whole(batch.inputs), batch.targets).backward();
  const double norm = torch::nn::utils::clip_grad_norm_(whole.parameters(), 0.01);
  ASSERT_GT(norm, 0.01);
  EXPECT_NEAR(pipeline.clip_grad_norm(0.01), norm, 1e-5 * norm);
  const auto mine = split.parameters();
  const auto theirs = whole.parameters();
  for (size_t i = 0; i < mine.size(); ++i) EXPECT_TRUE(at::allclose(mine[i].grad(), theirs[i].grad())) << i;
}

TEST(Pipeline, ALossOverWhatItCountsIsThatOfTheBatch) {
  const auto has_label = [](const at::Tensor& targets) { return targets.select(1, 0) > 0; };
  const auto loss = [&](const at::Tensor& output, const at::Tensor& targets) {
    const at::Tensor rows = has_label(targets);
    return at::mse_loss(output.index({rows}), targets.index({rows}));
  };
  OwnNetwork split;
  OwnNetwork whole;
  PipelineSetup setup = setup_of(split);
  setup.micro_batches = 12;  // some have no row that counts
  setup.loss =
      LossModule(loss, [&](const at::Tensor& targets) { return has_label(targets).sum().item<int64_t>(); });
  Pipeline pipeline(std::move(setup));
  const OwnBatch batch(0);
  const at::Tensor expected = loss(whole(batch.inputs), batch.targets);
  expected.backward();
  EXPECT_NEAR(pipeline.train(batch.inputs, batch.targets).loss.value(), expected.item<double>(), 1e-6);
  const auto mine = split.parameters();
  const auto theirs = whole.parameters();
  for (size_t i = 0; i < mine.size(); ++i)
    EXPECT_TRUE(at::allclose(mine[i].grad(), theirs[i].grad(), 1e-4, 1e-6)) << i;
}

TEST(Pipeline, TakesAScheduleOfTheUsersOwn) {
  OwnNetwork a;
  OwnNetwork b;
  PipelineSetup named = setup_of(a, "quant:4");
  named.micro_batches = 4;
  named.schedule = "gpipe";
  PipelineSetup own = setup_of(b, "quant:4");
  own.micro_batches = 4;
  int made = 0;
  own.schedule = Schedule("mine", [&](const ScheduleSize& size) {
    made += 1;
    return gpipe(size.stages, size.micro_batches);
  });
  const OwnBatch batch(0);
  Pipeline with_name(std::move(named));
  Pipeline with_own(std::move(own));
  EXPECT_EQ(with_name.train(batch.inputs, batch.targets).loss,
            with_own.train(batch.inputs, batch.targets).loss);
  EXPECT_GT(made, 0);
  for (size_t i = 0; i < a.parameters().size(); ++i) {
    EXPECT_TRUE(at::equal(a.parameters()[i].grad(), b.parameters()[i].grad()));
  }
}

TEST(Pipeline, FindsShapesWithoutTouchingTheRandomStateOrBuffers) {
  OwnNetwork network;
  torch::nn::Sequential stem(torch::nn::Linear(6, 16), torch::nn::BatchNorm1d(16), torch::nn::Dropout(0.5));
  torch::nn::AnyModule head(torch::nn::Linear(16, 5));
  PipelineSetup setup;
  setup.stages = {stem, head};
  setup.boundaries = {Boundary("stem")};
  setup.loss = mean_square;
  Pipeline pipeline(std::move(setup));
  const OwnBatch batch(0);
  const at::Tensor before = stem->buffers()[0].clone();
  torch::manual_seed(3);
  pipeline.prepare({batch.inputs}, 12);
  EXPECT_TRUE(at::equal(stem->buffers()[0], before));
  EXPECT_TRUE(stem->is_training());
  const at::Tensor drawn = torch::rand({2});
  torch::manual_seed(3);
  EXPECT_TRUE(at::equal(drawn, torch::rand({2})));
  EXPECT_EQ(pipeline.parameters().size(), 6U);
  EXPECT_GT(pipeline.train(batch.inputs, batch.targets).loss.value(), 0);
  EXPECT_FALSE(at::equal(stem->buffers()[0], before));
}

TEST(Pipeline, LeavesEachPartOfAModuleInItsMode) {
  torch::nn::BatchNorm1d frozen(4);
  torch::nn::Dropout dropout(0.5);
  torch::nn::Sequential first(torch::nn::Linear(6, 4), frozen, dropout);
  const torch::nn::AnyModule second(torch::nn::Linear(4, 2));
  PipelineSetup setup;
  setup.stages = {first, second};
  setup.boundaries = {Boundary("cut")};
  setup.loss = mean_square;
  Pipeline pipeline(std::move(setup));
  frozen->eval();
  const at::Tensor before = frozen->running_mean.clone();
  pipeline.train(torch::randn({8, 6}), torch::randn({8, 2}));
  EXPECT_FALSE(frozen->is_training());
  EXPECT_TRUE(first->is_training());
  EXPECT_TRUE(dropout->is_training());
  EXPECT_TRUE(second.ptr()->is_training());
  EXPECT_TRUE(at::equal(frozen->running_mean, before));
}

TEST(Pipeline, RefusesASetupThatCannotBe) {
  OwnNetwork network;
  const auto refusal = [&](const std::function<void(PipelineSetup&)>& change) {
    return message_of<InputError>([&] {
      PipelineSetup setup = setup_of(network);
      change(setup);
      Pipeline pipeline(std::move(setup));
      const OwnBatch batch(0);
      pipeline.train(batch.inputs, batch.targets);
    });
  };
  EXPECT_EQ(refusal([](auto& setup) { setup.boundaries.pop_back(); }),
            "a pipeline of 4 stages expects 3 boundaries, found 2");
  EXPECT_EQ(refusal([](auto& setup) { setup.boundaries[1] = Boundary("stem"); }),
            "boundary \"stem\": expected a name of its own");
  EXPECT_EQ(refusal([](auto& setup) { setup.loss = LossModule(); }),
            "a batch: expected a pipeline with a loss, or predict()");
  EXPECT_EQ(refusal([](auto& setup) { setup.replicas = 2; }),
            "replicas: expected a number that divides the 1 processes, found 2");
  EXPECT_EQ(refusal([](auto& setup) { setup.stages[2] = StageModule(); }),
            "stage 2: is empty, but rank 0 runs it");
  EXPECT_EQ(refusal([&](auto& setup) {
              setup.stages[3] = {[](const at::Tensor& x) { return x; }, {network.body->parameters()[1]}};
            }),
            "stage 3: parameter 0 is also parameter 1 of stage 2; expected each in one stage");
  EXPECT_EQ(refusal([](auto& setup) {
              setup.stages[3] = {[](const at::Tensor& x) { return x; }, {torch::zeros({2}, at::kMeta)}};
            }),
            "stage 3: parameter 0 is on meta, expected cpu");
  EXPECT_THAT(refusal([](auto& setup) { setup.schedule = "pipedream"; }),
              HasSubstr("schedule \"pipedream\" steps the optimizer after every micro-batch"));
  EXPECT_THAT(refusal([](auto& setup) { setup.schedule = "1f2b"; }), HasSubstr("1f2b"));
  EXPECT_THAT(refusal([](auto& setup) { setup.stages[2] = torch::nn::Linear(13, 8); }),
              testing::AllOf(HasSubstr("stage 2 cannot run on what stage 1 gives, [1, 12]: "),
                             HasSubstr("shapes"), testing::Not(HasSubstr("\n"))));
  EXPECT_EQ(refusal([&](auto& setup) { setup.stages[1] = torch::nn::Linear(16, 12); }),
            "stage 1 cannot run on what stage 0 gives, [1, 16], [1, 4]: it does not take 2 tensors");
  EXPECT_EQ(
      refusal([](auto& setup) { setup.stages[2] = [](const at::Tensor& x) { return x.to(at::kDouble); }; }),
      "stage 2 gives Double [1, 12] for one row, expected float32, float16, bfloat16, integers or bool of "
      "shape "
      "[1, ...]");
  EXPECT_EQ(refusal([](auto& setup) {
              setup.loss = [](const at::Tensor& output, const at::Tensor& targets) { return output - targets; };
            }),
            "the loss is a tensor of shape [12, 5], expected a scalar");
  EXPECT_EQ(refusal([](auto& setup) {
              setup.loss = [](const at::Tensor& output, const at::Tensor& targets) {
                return mean_square(output, targets).detach();
              };
            }),
            "the loss requires no gradient, although what it was given does; nothing would be trained");
  EXPECT_THAT(refusal([](auto& setup) {
                setup.micro_batches = 2;
                setup.boundaries[2] = Boundary("body", make_link("quant:4", "ef"), make_link("none"));
              }),
              HasSubstr("boundary body: feedback with 2 micro-batches"));
  EXPECT_THAT(refusal([](auto& setup) {
                setup.boundaries[0] = Boundary("stem", make_link("quant:4", "aq-sgd"), make_link("none"));
              }),
              HasSubstr("the ids of its rows"));
  EXPECT_THAT(refusal([](auto& setup) { setup.replica_link = make_link("topk:0.1", "marina:0.5"); }),
              HasSubstr("replica_link: expected feedback that needs its message alone"));
  EXPECT_THAT(refusal([](auto& setup) {
                setup.boundaries[0] = Boundary("stem", make_link("none"), make_link("topk:0.1", "marina:0.5"));
              }),
              HasSubstr("boundary stem: expected feedback that needs its message alone"));
}

TEST(Pipeline, RefusesABatchThatDoesNotFit) {
  OwnNetwork network;
  Pipeline pipeline(setup_of(network));
  const OwnBatch batch(0);
  EXPECT_EQ(message_of<InputError>([&] { pipeline.train(batch.inputs, batch.targets.narrow(0, 0, 3)); }),
            "the targets of a batch of 12 rows: expected a tensor of shape [12, ...], found [3, 5]");
  EXPECT_EQ(message_of<InputError>([&] {
              pipeline.train(batch.inputs, batch.targets, {1, 2});
            }),
            "a batch of 12 rows: expected an id for each, found 2");
  pipeline.train(batch.inputs, batch.targets);
  const OwnBatch larger(0, 13);
  EXPECT_EQ(message_of<InputError>([&] { pipeline.train(larger.inputs, larger.targets); }),
            "a batch of 13 rows: expected at most batch_size, 12, which is that of the first one unless given");
  const OwnBatch other(0, 5);
  EXPECT_EQ(pipeline.train(other.inputs, other.targets).rows, 5);
  const at::Tensor nan = batch.inputs * std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(pipeline.train(nan, batch.targets), NumericError);
  EXPECT_TRUE(pipeline.train(batch.inputs, batch.targets).loss.has_value());  // and trains on
}

TEST(Pipeline, AnEvaluationOfAnySizeChangesNothingOfTraining) {
  OwnNetwork a;
  OwnNetwork b;
  PipelineSetup setup = setup_of(a, "quant:4,scope=sample");
  setup.micro_batches = 4;
  PipelineSetup other = setup_of(b, "quant:4,scope=sample");
  other.micro_batches = 4;
  Pipeline evaluated(std::move(setup));
  Pipeline plain(std::move(other));
  const OwnBatch batch(0);
  const OwnBatch large(1, 48);
  const OwnBatch small(2, 3);
  EXPECT_GT(evaluated.evaluate(large.inputs, large.targets).loss.value(), 0);
  EXPECT_GT(evaluated.evaluate(small.inputs, small.targets).loss.value(), 0);
  for (int step = 0; step < 2; ++step) {
    const StepReport report = evaluated.train(batch.inputs, batch.targets);
    EXPECT_EQ(report.traffic.messages, plain.train(batch.inputs, batch.targets).traffic.messages);
    EXPECT_EQ(report.traffic.messages, 8U * 4);
    EXPECT_EQ(evaluated.predict({large.inputs}).at(0).size(0), 48);
  }
  for (size_t i = 0; i < a.parameters().size(); ++i)
    EXPECT_TRUE(at::equal(a.parameters()[i].grad(), b.parameters()[i].grad())) << i;
}

TEST(Pipeline, TrainsTheParametersThatModulesHaveNow) {
  OwnNetwork network;
  Pipeline pipeline(setup_of(network));
  const OwnBatch batch(0);
  pipeline.train(batch.inputs, batch.targets);
  const size_t before = pipeline.parameters().size();
  const at::Tensor scale = network.stem->register_parameter("scale", torch::ones({1}));
  scale.mutable_grad() = torch::full({1}, 1e6F);
  EXPECT_EQ(pipeline.parameters().size(), before + 1);
  EXPECT_NEAR(pipeline.clip_grad_norm(1), 1e6, 1);
  EXPECT_NEAR(scale.grad().item<double>(), 1, 1e-5);
}

TEST(Pipeline, HalvesAndIntegersCrossACut) {
  torch::manual_seed(4);
  const at::Tensor table = torch::randn({9, 6}).requires_grad_(true);
  const at::Tensor weight = torch::randn({6, 5}).to(at::kBFloat16).requires_grad_(true);
  const auto stem = [table](const at::Tensor& words) {
    return TensorList{at::embedding(table, words).sum(1).to(at::kBFloat16), words.gt(3).any(1),
                      words.to(at::kInt)};
  };
  const auto head = [weight](const at::Tensor& x, const at::Tensor& any, const at::Tensor& words) {
    EXPECT_EQ(x.scalar_type(), at::kBFloat16);
    EXPECT_EQ(any.scalar_type(), at::kBool);
    EXPECT_EQ(words.scalar_type(), at::kInt);
    return (at::matmul(x, weight) * any.unsqueeze(1)).to(at::kFloat) + words.sum(1, true);
  };
  PipelineSetup setup;
  setup.stages = {{stem, {table}}, {head, {weight}}};
  setup.boundaries = {Boundary("stem")};
  setup.loss = mean_square;
  setup.micro_batches = 2;
  Pipeline pipeline(std::move(setup));
  const at::Tensor words = torch::randint(0, 9, {6, 3}, at::kLong);
  const at::Tensor targets = torch::randn({6, 5});
  const StepReport report = pipeline.train(words, targets);
  const at::Tensor of_table = table.grad().clone();
  const at::Tensor of_weight = weight.grad().clone();
  table.mutable_grad().reset();
  weight.mutable_grad().reset();
  at::Tensor loss;
  for (int part = 0; part < 2; ++part) {  // as the micro-batches add up
    const TensorList crossing = stem(words.narrow(0, 3 * part, 3));
    loss = mean_square(head(crossing[0], crossing[1], crossing[2]), targets.narrow(0, 3 * part, 3));
    (loss / 2).backward();
  }
  EXPECT_TRUE(at::equal(of_table, table.grad()));
  EXPECT_TRUE(at::equal(of_weight, weight.grad()));
  EXPECT_EQ(report.traffic.messages, 2U * (3 + 1));  // integers have no gradient
}

TEST(Pipeline, ReportsNoLossWhereNothingWasCounted) {
  OwnNetwork network;
  PipelineSetup setup = setup_of(network);
  setup.loss =
      LossModule(mean_square, [](const at::Tensor& targets) { return targets.gt(0).sum().item<int64_t>(); });
  Pipeline pipeline(std::move(setup));
  const OwnBatch batch(0);
  const StepReport none = pipeline.evaluate(batch.inputs, torch::zeros({12, 5}));
  EXPECT_FALSE(none.loss.has_value());
  EXPECT_FALSE(pipeline.gather(none).loss.has_value());
  const StepReport some = pipeline.evaluate(batch.inputs, batch.targets);
  EXPECT_EQ(pipeline.gather(some).loss, some.loss);
}

/// The state of each end of each channel, by the end's name.
std::map<std::string, at::Tensor> state_of(Pipeline& pipeline) {
  struct Copier : StateVisitor {
    void tensor(std::string_view name, at::Tensor& value) override { copies.emplace(name, value.clone()); }
    std::map<std::string, at::Tensor> copies;
  } copier;
  pipeline.visit_state(copier);
  return copier.copies;
}

TEST(Pipeline, GoesOnAfterABatchThatFailsOnItsWay) {
  for (const int failing : {1, 2, 3, 4, 5, 6}) {  // of the head's passes, forward and backward
    OwnNetwork network;
    int passes = -1;
    const auto pass = [&] {
      if (++passes == failing) throw std::runtime_error("on the way");
    };
    PipelineSetup setup = setup_of(network, "topk:0.5", "ef21");
    setup.schedule = "gpipe";
    setup.micro_batches = 3;
    setup.loss = [&](const at::Tensor& output, const at::Tensor& targets) {
      pass();
      const at::Tensor watched = output.clone();
      if (watched.requires_grad()) watched.register_hook([&](const at::Tensor& /*gradient*/) { pass(); });
      return mean_square(watched, targets);
    };
    Pipeline pipeline(setup);
    const OwnBatch batch(0);
    pipeline.prepare({batch.inputs}, 12);
    passes = 0;
    EXPECT_THROW(pipeline.train(batch.inputs, batch.targets), std::runtime_error) << failing;
    passes = 10;
    EXPECT_TRUE(pipeline.train(batch.inputs, batch.targets).loss.has_value()) << failing;
    const auto state = state_of(pipeline);
    size_t senders = 0;
    for (const auto& [name, sent] : state) {
      const size_t at = name.find("sender");
      if (at == std::string::npos) continue;
      std::string other = name;
      EXPECT_TRUE(at::equal(sent, state.at(other.replace(at, 6, "receiver")))) << name << ", " << failing;
      ++senders;
    }
    EXPECT_EQ(senders, 8U);  // four tensors cross, each there and back
  }
}

}  // namespace
}  // namespace strait
