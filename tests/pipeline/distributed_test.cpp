// Stages in processes of their own, here as threads over real connections, against all of them in one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "strait/transport/stop_agreement.h"
#include "tests/pipeline/small_network.h"
#include "tests/transport/ranks.h"

namespace strait {
namespace {

using test::Fixture;
using test::Ranks;
using testing::AllOf;
using testing::Each;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kStages = 4;
constexpr int64_t kBatch = 12;
constexpr uint64_t kSteps = 8;  // every sample comes twice

struct Scheme {
  std::string activations;
  std::string activation_feedback;
  std::string gradients;
  std::string gradient_feedback;
  bool reuse_indices = false;

  CompressionOptions options() const {
    CompressionOptions all;
    all.activations = {activations, activation_feedback};
    all.gradients = {gradients, gradient_feedback};
    all.reuse_indices = reuse_indices;
    return all;
  }
};

const std::vector<Scheme> kSchemes = {{"none", "none", "none", "none"},
                                      {"fp16", "none", "bf16", "none"},
                                      {"quant:4,scope=sample", "none", "quant:8,scope=sample", "none"},
                                      {"topk:0.3", "none", "topk:0.3", "none"},
                                      {"topk:0.3", "none", "topk:0.3", "none", true},
                                      {"topk:0.3", "ef", "topk:0.3", "ef"},
                                      {"topk:0.3", "ef21", "topk:0.3", "ef21"},
                                      {"topk:0.3", "ef-mixed", "topk:0.3", "ef-mixed"},
                                      {"topk:0.3", "aq-sgd", "topk:0.3", "none"},
                                      {"topk:0.3", "ef,slots=sample", "topk:0.3", "ef21,slots=sample"}};

/// What the training leaves: the gradients of every layer, added up over all steps, and the losses, of each
/// step that of training and that of every mode of evaluation.
struct Outcome {
  std::vector<at::Tensor> gradients;
  std::vector<double> losses;
};

std::vector<StepInput> batches() {
  std::vector<StepInput> all;
  for (uint64_t step = 0; step < kSteps; ++step)
    all.push_back(Fixture::batch(step % 2 == 0 ? kBatch : 7, step));
  return all;
}

/// The connections of a rank in a row of stages: boundary b is between the ranks b and b + 1.
std::unique_ptr<Transport> connect(Group& group) {
  std::vector<int> peers;
  for (int b = 0; b + 1 < kStages; ++b) peers.push_back(b == group.rank() ? b + 1 : b);
  return group.make_transport(peers, {"cut0", "cut1", "cut2"});
}

std::vector<double> train(Executor& executor, const std::vector<StepInput>& inputs) {
  std::vector<double> losses;
  for (const StepInput& input : inputs) {
    losses.push_back(executor.train(input, true).loss_sum);
    HeldState held(executor.boundaries());
    for (const auto mode :
         {EvaluationMode::off, EvaluationMode::plain, EvaluationMode::live, EvaluationMode::frozen}) {
      losses.push_back(executor.evaluate(input, mode).loss_sum);
    }
    held.put_back();
  }
  return losses;
}

Outcome one_process(const Scheme& scheme, const PipelineOptions& pipeline) {
  Fixture all;
  Executor executor = all.executor(pipeline, scheme.options(), kBatch);
  const auto losses = train(executor, batches());
  return {all.network.gradients(), losses};
}

struct Case {
  Scheme scheme;
  PipelineOptions pipeline;

  std::string name() const {
    return fmt::format("{} {} {} {} {}", scheme.activations, scheme.activation_feedback, scheme.reuse_indices,
                       pipeline.schedule, pipeline.micro_batches);
  }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Scheme& scheme : kSchemes) {
    for (const char* schedule : {"gpipe", "1f1b"}) {
      for (const int micro_batches : {1, 4}) {
        all.push_back({scheme, {.schedule = schedule, .micro_batches = micro_batches}});
      }
    }
  }
  return all;
}

/// Every case, one after another, by the same four processes.
std::vector<Outcome> processes(const std::vector<Case>& all) {
  std::vector<Outcome> outcomes(all.size());
  std::vector<std::vector<Fixture>> parts;  // the same weights in each
  for (size_t i = 0; i < all.size(); ++i) parts.emplace_back(kStages);
  const auto inputs = batches();
  const auto errors = Ranks(kStages).run([&](Group& group) {
    const int rank = group.rank();
    for (size_t i = 0; i < all.size(); ++i) {
      const auto transport = connect(group);
      Executor executor(parts[i][static_cast<size_t>(rank)].setup(all[i].pipeline, all[i].scheme.options(),
                                                                  kBatch, rank, kStages),
                        *transport);
      const auto losses = train(executor, inputs);
      if (rank == kStages - 1) outcomes[i].losses = losses;
      transport->drain();
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t stage = 0; stage < kStages; ++stage) {
      for (const auto& parameter : parts[i][stage].network.layers[stage]->parameters()) {
        outcomes[i].gradients.push_back(parameter.grad());
      }
    }
  }
  return outcomes;
}

TEST(Distributed, EverySchemeGivesTheBitsOfOneProcess) {
  const auto all = cases();
  const auto outcomes = processes(all);
  for (size_t i = 0; i < all.size(); ++i) {
    const Outcome expected = one_process(all[i].scheme, all[i].pipeline);
    EXPECT_EQ(outcomes[i].losses, expected.losses) << all[i].name();
    ASSERT_EQ(outcomes[i].gradients.size(), expected.gradients.size());
    for (size_t k = 0; k < expected.gradients.size(); ++k) {
      EXPECT_TRUE(at::equal(outcomes[i].gradients[k], expected.gradients[k]))
          << all[i].name() << ", tensor " << k;
    }
  }
}

/// Trains on every rank, and evaluates after every batch, until all stop because `wants` of some rank said so;
/// how many passes of either kind each did.
std::vector<uint64_t> passes_until(const std::function<bool(int rank, uint64_t pass)>& wants) {
  std::vector<Fixture> parts(kStages);
  const auto inputs = batches();
  std::vector<uint64_t> done(kStages);
  const auto errors = Ranks(kStages).run([&](Group& group) {
    const int rank = group.rank();
    const auto transport = connect(group);
    Executor executor(parts[static_cast<size_t>(rank)].setup({.schedule = "1f1b", .micro_batches = 2}, {},
                                                             kBatch, rank, kStages),
                      *transport);
    StopAgreement stop(group);
    uint64_t& passes = done[static_cast<size_t>(rank)];
    while (!stop.is_last_step()) {
      const StepInput& input = inputs[passes / 2 % kSteps];
      stop.begin_step(wants(rank, passes));
      if (passes++ % 2 == 0) {
        executor.train(input, true);
      } else {
        executor.evaluate(input, EvaluationMode::plain);
      }
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
  return done;
}

TEST(Distributed, TheFirstRankStopsAllAfterTheSameBatch) {
  for (const uint64_t when : {0U, 4U, 5U}) {
    EXPECT_THAT(passes_until([&](int rank, uint64_t pass) { return rank == 0 && pass == when; }),
                Each(when + 1));
  }
}

TEST(Distributed, AnyOtherRankAsksTheFirstTo) {
  for (const int asking : {1, kStages - 1}) {
    const auto passes = passes_until([&](int rank, uint64_t pass) { return rank == asking && pass == 2; });
    EXPECT_THAT(passes, Each(AllOf(Ge(3U), passes.front()))) << asking;
  }
}

TEST(Distributed, EveryRankHearsOfDivergence) {
  std::vector<Fixture> parts(kStages);
  std::vector<int> diverged(kStages);
  auto inputs = batches();
  inputs[3].inputs[0][5][0] = std::numeric_limits<float>::quiet_NaN();
  Ranks(kStages).run([&](Group& group) {
    const int rank = group.rank();
    const auto transport = connect(group);
    try {
      Executor executor(parts[static_cast<size_t>(rank)].setup(
                            {.schedule = "gpipe", .micro_batches = 4},
                            Scheme{"quant:4", "none", "none", "none"}.options(), kBatch, rank, kStages),
                        *transport);
      for (const StepInput& input : inputs) executor.train(input, true);
    } catch (const NumericError& error) {
      group.fail({.rank = rank, .diverged = true, .reason = error.what()});
      EXPECT_THAT(error.what(), HasSubstr("not finite"));
      diverged[static_cast<size_t>(rank)] = 1;
    }
  });
  EXPECT_THAT(diverged, Each(1));
}

}  // namespace
}  // namespace strait
