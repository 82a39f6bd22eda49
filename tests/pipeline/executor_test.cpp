#include "strait/pipeline/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/pipeline/compress_function.h"
#include "tests/pipeline/small_network.h"
#include "tests/support/errors.h"

namespace strait {
namespace {

using test::CompressFunction;
using test::cross_entropy;
using test::Fixture;
using test::message_of;
using test::Network;
using testing::Each;
using testing::HasSubstr;

/// Index reuse in autograd's terms: TopK forward, the gradient at the same indices backward.
class MaskFunction : public torch::autograd::Function<MaskFunction> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, int64_t k) {
    const at::Tensor kept = std::get<1>(x.abs().topk(k, 1));
    const at::Tensor mask = at::zeros_like(x).scatter(1, kept, 1);
    context->save_for_backward({mask});
    return x * mask;
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               torch::autograd::tensor_list gradients) {
    return {gradients[0] * context->get_saved_variables()[0], {}};
  }
};

CompressionOptions compression(const std::string& activation, const std::string& gradient) {
  CompressionOptions options;
  options.activations.codec = activation;
  options.gradients.codec = gradient;
  return options;
}

void expect_equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i], b[i])) << "parameter " << i;
}

TEST(Executor, OneMicroBatchWithoutCompressionIsTheUnsplitNetworkBitForBit) {
  for (const char* schedule : {"gpipe", "1f1b"}) {
    Fixture split;
    Executor executor = split.executor({schedule, 1}, {}, 10);
    const StepInput input = Fixture::batch(10);
    const StepResult result = executor.train(input, true);

    Network whole(1);
    at::Tensor x = input.inputs.front();
    for (size_t i = 0; i < whole.layers.size(); ++i) x = whole.layer(i, x);
    const Loss loss = cross_entropy(x, input.targets);
    loss.mean.backward();

    expect_equal(split.network.gradients(), whole.gradients());
    EXPECT_EQ(result.loss_sum, loss.mean.item<double>() * 10);
    EXPECT_EQ(result.correct, loss.correct);
    EXPECT_EQ(result.count, 10);
    EXPECT_EQ(split.transport.pending(), 0U);
  }
}

TEST(Executor, EqualsTheOperatorsInsideAutogradBitForBit) {
  for (const auto& [activation, gradient] :
       std::vector<std::pair<std::string, std::string>>{{"quant:4", "quant:8"},
                                                        {"topk:0.3", "topk:0.2,values=bf16"},
                                                        {"fp16", "quant:2,rounding=stochastic"}}) {
    Fixture split;
    Executor executor = split.executor({"1f1b", 1}, compression(activation, gradient), 10);
    const StepInput input = Fixture::batch(10, 3);
    executor.train(input, true);

    Network whole(1);
    at::Tensor x = input.inputs.front();
    std::vector<CompressFunction::Codecs> codecs(3, {make_codec(activation), make_codec(gradient), 9, 3, 0});
    for (size_t i = 0; i < whole.layers.size(); ++i) {
      x = whole.layer(i, x);
      if (i + 1 == whole.layers.size()) break;
      codecs[i].boundary = static_cast<uint16_t>(i);
      x = CompressFunction::apply(x, reinterpret_cast<int64_t>(&codecs[i]));
    }
    cross_entropy(x, input.targets).mean.backward();
    expect_equal(split.network.gradients(), whole.gradients());
  }
}

/// A pipeline of options against one whose boundaries are put together by hand, over steps in which feedback
/// moves; and what crosses each is the size of its own codec's messages.
TEST(Executor, ABoundaryOfItsOwnKindIsThatOfItsLinksBitForBit) {
  CompressionOptions options;
  options.activations = {"quant:4,scope=sample", "ef21"};
  options.gradients.codec = "quant:8,scope=sample";
  options.boundaries = {{"cut1", {.codec = "fp16", .feedback = "none"}, {.codec = {}, .feedback = "ef"}}};
  Fixture split;
  Executor executor = split.executor({"1f1b", 2}, options, 10);

  Fixture by_hand;
  auto setup = by_hand.setup({"1f1b", 2}, {}, 10, 0, 1);
  setup.boundaries.clear();
  for (uint16_t i = 0; i < 3; ++i) {
    const BoundaryLinks all{make_link("quant:4,scope=sample", "ef21"), make_link("quant:8,scope=sample")};
    const BoundaryLinks own{make_link("fp16"), make_link("quant:8,scope=sample", "ef")};
    setup.boundaries.emplace_back("cut" + std::to_string(i), i, i == 1 ? own : all, 0,
                                  BoundaryEndpoints::Local{});
  }
  Executor expected(std::move(setup), by_hand.transport);

  for (uint64_t step = 0; step < 3; ++step) {
    split.network.zero_grad();
    by_hand.network.zero_grad();
    executor.train(Fixture::batch(10, step), true);
    expected.train(Fixture::batch(10, step), true);
    expect_equal(split.network.gradients(), by_hand.network.gradients());
  }
  const std::vector<uint64_t> activations = {16 / 2 + 8, 12 * 2, 8 / 2 + 8};  // bytes of a sample
  const std::vector<uint64_t> gradients = {16 + 8, 12 + 8, 8 + 8};
  for (size_t i = 0; i < 3; ++i) {
    const uint64_t headers = 3 * 2 * kFrameHeaderSize;
    EXPECT_EQ(executor.boundaries()[i].activations.sender->take_traffic().wire_bytes,
              headers + 3 * 10 * activations[i]);
    EXPECT_EQ(executor.boundaries()[i].gradients.sender->take_traffic().wire_bytes,
              headers + 3 * 10 * gradients[i]);
  }
}

TEST(Executor, ReusedIndicesAreAMaskOnTheGradientBitForBit) {
  Fixture split;
  CompressionOptions options = compression("topk:0.5", "topk:0.5");
  options.reuse_indices = true;
  Executor executor = split.executor({"1f1b", 1}, options, 10);
  const StepInput input = Fixture::batch(10);
  executor.train(input, true);

  Network whole(1);
  at::Tensor x = input.inputs.front();
  for (size_t i = 0; i < whole.layers.size(); ++i) {
    x = whole.layer(i, x);
    if (i + 1 < whole.layers.size()) x = MaskFunction::apply(x, x.size(1) / 2);
  }
  cross_entropy(x, input.targets).mean.backward();
  expect_equal(split.network.gradients(), whole.gradients());
  EXPECT_EQ(executor.boundaries()[0].gradients.sender->take_traffic().wire_bytes,
            kFrameHeaderSize + 10 * 8 * sizeof(float));
  executor.evaluate(Fixture::batch(10, 1), EvaluationMode::plain);
  executor.train(Fixture::batch(7, 2), true);
}

struct Scheme {
  std::string activation_feedback;
  std::string gradient_feedback;
  bool reuse_indices = false;

  CompressionOptions options() const {
    CompressionOptions all = compression("topk:0.3", "topk:0.3");
    all.activations.feedback = activation_feedback;
    all.gradients.feedback = gradient_feedback;
    all.reuse_indices = reuse_indices;
    return all;
  }
};

const std::vector<Scheme> kSchemes = {{"ef", "ef"},
                                      {"ef21", "ef21"},
                                      {"ef-mixed", "ef-mixed"},
                                      {"aq-sgd", "none"},
                                      {"none", "none", true},
                                      {"ef21", "none", true},
                                      {"aq-sgd", "ef-mixed"},
                                      {"ef21,slots=sample", "ef,slots=sample"}};

std::vector<at::Tensor> gradients_of(const Scheme& scheme, const PipelineOptions& pipeline,
                                     bool evaluates = true) {
  Fixture split;
  Executor executor = split.executor(pipeline, scheme.options(), 12);
  // A short batch after each full one; eight steps, so that every sample comes twice.
  for (uint64_t step = 0; step < 8; ++step) {
    executor.train(Fixture::batch(step % 2 == 0 ? 12 : 7, step), true);
    if (!evaluates) continue;
    HeldState held(executor.boundaries());
    for (const auto mode : {EvaluationMode::live, EvaluationMode::plain, EvaluationMode::frozen}) {
      executor.evaluate(Fixture::batch(12, 50 + step), mode);
    }
    held.put_back();
  }
  return split.network.gradients();
}

TEST(Executor, EvaluationInAnyModeLeavesTrainingAlone) {
  for (const Scheme& scheme : kSchemes) {
    expect_equal(gradients_of(scheme, {"1f1b", 4}), gradients_of(scheme, {"1f1b", 4}, false));
  }
}

TEST(Executor, EverySchemeGivesTheSameBitsUnderEverySchedule) {
  for (const Scheme& scheme : kSchemes) {
    for (const int micro_batches : {1, 4}) {
      expect_equal(gradients_of(scheme, {"gpipe", micro_batches}),
                   gradients_of(scheme, {"1f1b", micro_batches}));
    }
  }
}

TEST(Executor, EverySchemeGivesTheSameNumbersInMicroBatches) {
  for (const Scheme& scheme : kSchemes) {
    const auto whole = gradients_of(scheme, {"1f1b", 1});
    const auto parts = gradients_of(scheme, {"1f1b", 3});
    for (size_t i = 0; i < whole.size(); ++i) {
      EXPECT_TRUE(at::allclose(whole[i], parts[i], 1e-3, 1e-5)) << scheme.activation_feedback << " " << i;
    }
  }
}

TEST(Executor, MicroBatchesGiveTheGradientOfTheWholeBatch) {
  for (const int64_t rows : {12, 10, 7, 1}) {  // 12 fills three micro-batches; the others end short
    const StepInput input = Fixture::batch(rows);
    Fixture whole;
    whole.executor({"gpipe", 1}, {}, 12).train(input, true);
    Fixture parts;
    const StepResult result = parts.executor({"1f1b", 3}, {}, 12).train(input, true);
    EXPECT_EQ(result.count, rows);
    const auto a = whole.network.gradients();
    const auto b = parts.network.gradients();
    for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::allclose(a[i], b[i], 1e-5, 1e-7)) << rows << " " << i;
  }
}

TEST(Executor, SchedulesAgreeBitForBit) {
  for (const int micro_batches : {1, 2, 4}) {
    std::vector<std::vector<at::Tensor>> gradients;
    for (const char* schedule : {"gpipe", "1f1b", "interleaved"}) {
      Fixture split;
      PipelineOptions options{.schedule = schedule, .micro_batches = micro_batches};
      if (options.schedule == "interleaved") options.stages_per_rank = 2;
      Executor executor = split.executor(options, compression("quant:4,scope=sample", "topk:0.5"), 12);
      for (uint64_t step = 0; step < 3; ++step) executor.train(Fixture::batch(12, step), true);
      gradients.push_back(split.network.gradients());
    }
    expect_equal(gradients[0], gradients[1]);
    expect_equal(gradients[0], gradients[2]);
  }
}

/// A plan is made for every number of micro-batches; one that was refused is refused again.
TEST(Executor, RefusesAPlanThatDoesNotTrainAsOftenAsItIsAskedFor) {
  const auto refusals = [](const Schedule::Make& make, int64_t rows) {
    Fixture split;
    auto setup = split.setup({"1f1b", 3}, {}, 9, 0, 1);
    setup.schedule = Schedule("mine", make);
    Executor executor(std::move(setup), split.transport);
    std::vector<std::string> all;
    for (int time = 0; time < 2; ++time)
      all.push_back(message_of<InputError>([&] { executor.train(Fixture::batch(rows), true); }));
    return all;
  };
  const auto forward_alone = [](const ScheduleSize& size) {
    return forward_only(size.stages, size.micro_batches);
  };
  const auto of_whole_batches = [](const ScheduleSize& size) {
    if (size.micro_batches != 3) throw InputError("three alone");
    return gpipe(size.stages, size.micro_batches);
  };
  EXPECT_THAT(refusals(forward_alone, 9), Each(HasSubstr("is missing")));
  EXPECT_THAT(refusals(of_whole_batches, 3), Each("three alone"));
}

TEST(Executor, EvaluationChangesNoGradientAndCountsNoBytes) {
  Fixture split;
  Executor executor = split.executor({"1f1b", 2}, compression("quant:2", "quant:8"), 10);
  executor.train(Fixture::batch(10), true);
  const auto before = split.network.gradients();
  const uint64_t counted = executor.boundaries()[0].activations.sender->take_traffic().messages;
  EXPECT_EQ(counted, 2U);
  const StepResult off = executor.evaluate(Fixture::batch(10, 5), EvaluationMode::off);
  const StepResult on = executor.evaluate(Fixture::batch(10, 5), EvaluationMode::plain);
  EXPECT_NE(off.loss_sum, on.loss_sum);
  EXPECT_EQ(executor.boundaries()[0].activations.sender->take_traffic().messages, 0U);
  expect_equal(split.network.gradients(), before);
  executor.train(Fixture::batch(10), true);  // the channels' sequence numbers still agree
}

TEST(Executor, CountsTheBytesThatCross) {
  Fixture split;
  Executor executor = split.executor({"1f1b", 2}, compression("quant:4", "none"), 10);
  executor.train(Fixture::batch(10), true);
  BoundaryEndpoints& boundary = executor.boundaries()[0];
  const Traffic activations = boundary.activations.sender->take_traffic();
  EXPECT_EQ(activations.raw_bytes, 10U * 16 * 4);
  EXPECT_EQ(activations.wire_bytes, 2 * (kFrameHeaderSize + 8 + 5 * 16 / 2));
  const Traffic gradients = boundary.gradients.sender->take_traffic();
  EXPECT_EQ(gradients.wire_bytes, 2 * (kFrameHeaderSize + 5 * 16 * 4));
  EXPECT_GT(boundary.gradients.receiver->take_traffic().decode_seconds, 0);
}

TEST(Executor, ANonFiniteMessageNamesWhereItWas) {
  Fixture split;
  Executor executor = split.executor({"1f1b", 2}, compression("none", "topk:0.1"), 10);
  StepInput bad = Fixture::batch(10, 7);
  bad.inputs[0][8][0] = std::numeric_limits<float>::quiet_NaN();
  try {
    executor.train(bad, true);
    FAIL();
  } catch (const NumericError& error) {
    EXPECT_STREQ(error.what(), "boundary cut0, activation, micro-batch 1, step 7: a value is not finite");
  }
}

/// Of an executor whose codecs keep nothing: what it trains with.
TEST(Executor, ATrialHasTheGradientsOfTrainingAndIsNotCounted) {
  for (const char* schedule : {"gpipe", "1f1b", "interleaved"}) {
    PipelineOptions options{.schedule = schedule, .micro_batches = 3};
    if (options.schedule == "interleaved") options.stages_per_rank = 2;
    const CompressionOptions codecs = compression("quant:4,scope=sample", "topk:0.5");
    Fixture trained;
    Executor training = trained.executor(options, codecs, 12);
    Fixture tried;
    Executor trial = tried.executor(options, codecs, 12);
    for (const int64_t rows : {12, 7}) {
      trained.network.zero_grad();
      tried.network.zero_grad();
      const StepResult expected = training.train(Fixture::batch(rows, 2), true);
      EXPECT_EQ(trial.trial(Fixture::batch(rows, 2)).loss_sum, expected.loss_sum);
      expect_equal(tried.network.gradients(), trained.network.gradients());
    }
    EXPECT_EQ(trial.boundaries()[0].activations.sender->take_traffic().messages, 0U);
    EXPECT_TRUE(trial.take_times().empty());
  }
}

TEST(Executor, ATrialIsOfTheBareCodecAndLeavesTrainingAlone) {
  for (const Scheme& scheme : kSchemes) {
    Fixture alone;
    Executor expected = alone.executor({"1f1b", 2}, scheme.options(), 12);
    Fixture split;
    Executor executor = split.executor({"1f1b", 2}, scheme.options(), 12);
    Fixture bare;
    Executor without = bare.executor({"1f1b", 2}, compression("topk:0.3", "topk:0.3"), 12);
    for (uint64_t step = 0; step < 6; ++step) {
      split.network.zero_grad();
      bare.network.zero_grad();
      executor.trial(Fixture::batch(12, step));
      without.train(Fixture::batch(12, step), true);
      if (!scheme.reuse_indices) expect_equal(split.network.gradients(), bare.network.gradients());
      split.network.zero_grad();
      alone.network.zero_grad();
      executor.train(Fixture::batch(12, step), true);
      expected.train(Fixture::batch(12, step), true);
      expect_equal(split.network.gradients(), alone.network.gradients());
    }
  }
}

TEST(Executor, WhatATrialCannotSendCrossesAsZeros) {
  Fixture split;
  Executor executor = split.executor({"1f1b", 2}, compression("quant:4,scope=sample", "topk:0.1"), 10);
  StepInput bad = Fixture::batch(10, 7);
  bad.inputs[0][8][0] = std::numeric_limits<float>::infinity();
  {
    const torch::NoGradGuard no_grad;
    split.network.layers[0]->weight[0][0] = 0;  // an infinity times it is no number
  }
  EXPECT_NO_THROW(executor.trial(bad));

  Network whole(1);
  {
    const torch::NoGradGuard no_grad;
    whole.layers[0]->weight[0][0] = 0;
  }
  std::vector<CompressFunction::Codecs> codecs(
      3, {make_codec("quant:4,scope=sample"), make_codec("topk:0.1"), 9, 7, 0});
  for (const int64_t part : {0, 1}) {
    const at::Tensor targets = bad.targets.narrow(0, 5 * part, 5);
    at::Tensor x = bad.inputs.front().narrow(0, 5 * part, 5);
    for (size_t i = 0; i < whole.layers.size(); ++i) {
      x = whole.layer(i, x);
      if (i + 1 == whole.layers.size()) break;
      codecs[i].boundary = static_cast<uint16_t>(i);
      const bool is_refused = i == 0 && part == 1;
      x = is_refused ? at::zeros_like(x) : CompressFunction::apply(x, reinterpret_cast<int64_t>(&codecs[i]));
    }
    cross_entropy(x, targets).mean.mul(0.5).backward();
  }
  const auto [gradients, expected] = std::pair(split.network.gradients(), whole.gradients());
  for (size_t i = 2; i < expected.size(); ++i) {  // behind the first layer, whose own gradients are no numbers
    EXPECT_TRUE(gradients[i].allclose(expected[i], 1e-5, 1e-7)) << "parameter " << i;
  }

  split.network.zero_grad();
  executor.train(Fixture::batch(10), true);
  for (const auto& gradient : split.network.gradients()) EXPECT_TRUE(gradient.isfinite().all().item<bool>());
}

}  // namespace
}  // namespace strait
