// A Pipeline over several ranks, here as threads over real connections, against all stages in one process.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstring>
#include <stdexcept>

#include "tests/pipeline/own_network.h"
#include "tests/transport/meetings.h"
#include "tests/transport/ranks.h"

namespace strait {
namespace {

using test::OwnBatch;
using test::OwnNetwork;
using test::Ranks;
using testing::Each;
using testing::HasSubstr;

constexpr uint64_t kSteps = 8;  // every sample comes twice

struct Outcome {
  std::vector<double> losses;
  std::vector<at::Tensor> parameters;
  uint64_t wire_bytes = 0;
};

struct Training {
  std::string codec;
  std::string feedback = "none";
  int micro_batches = 1;

  PipelineSetup setup(OwnNetwork& network, int ranks = 4) const {
    PipelineSetup setup;
    if (ranks == 2) setup.schedule = "interleaved";
    setup.stages = network.stages();
    setup.boundaries = test::own_boundaries(codec, feedback);
    setup.loss = test::mean_square;
    setup.micro_batches = micro_batches;
    return setup;
  }

  /// Trains this rank's stages; a rank without the first or last stage is given nothing but ids.
  Outcome run(OwnNetwork& network, const std::vector<OwnBatch>& batches, std::shared_ptr<Group> group) const {
    Pipeline pipeline(setup(network, group->size()), group);
    torch::optim::SGD optimizer(pipeline.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    Outcome outcome;
    for (const auto& batch : batches) {
      optimizer.zero_grad();
      const at::Tensor inputs = pipeline.runs(0) ? batch.inputs : at::Tensor();
      const at::Tensor targets = pipeline.runs(3) ? batch.targets : at::Tensor();
      const StepReport report = pipeline.gather(pipeline.train(inputs, targets, batch.ids));
      optimizer.step();
      outcome.losses.push_back(report.loss.value());
      outcome.wire_bytes += report.traffic.wire_bytes;
    }
    outcome.parameters = network.parameters();
    return outcome;
  }
};

std::vector<OwnBatch> batches() {
  std::vector<OwnBatch> all;
  for (uint64_t step = 0; step < kSteps; ++step) all.emplace_back(step);
  return all;
}

/// The ranks' groups live as long as the test's work; a Pipeline wants to share one.
std::shared_ptr<Group> borrowed(Group& group) {
  return {&group, [](Group*) {}};
}

std::vector<std::pair<int, test::Meeting>> ways_to_meet() {
  std::vector<std::pair<int, test::Meeting>> ways;
  for (const int ranks : {2, 4}) {
    for (const auto& meeting : test::meetings()) ways.emplace_back(ranks, meeting);
  }
  return ways;
}

TEST(DistributedPipeline, EqualsOneProcessBitForBit) {
  for (const Training& training : std::vector<Training>{{"none"},
                                                        {"topk:0.3", "ef21", 3},
                                                        {"quant:4,scope=sample", "aq-sgd", 2},
                                                        {"quant:2,rounding=stochastic"}}) {
    const auto data = batches();
    OwnNetwork alone;
    const Outcome expected = training.run(alone, data, std::make_shared<SingleProcessGroup>());
    for (const auto& [ranks, meeting] : ways_to_meet()) {
      std::vector<OwnNetwork> networks(static_cast<size_t>(ranks));
      std::vector<Outcome> outcomes(static_cast<size_t>(ranks));
      const auto errors = meeting.run(ranks, std::chrono::seconds(20), [&](Group& group) {
        const auto rank = static_cast<size_t>(group.rank());
        outcomes[rank] = training.run(networks[rank], data, borrowed(group));
      });
      ASSERT_THAT(errors, Each(""));
      for (int rank = 0; rank < ranks; ++rank) {
        const Outcome& outcome = outcomes[static_cast<size_t>(rank)];
        EXPECT_EQ(outcome.losses, expected.losses) << training.codec << ", rank " << rank;
        EXPECT_EQ(outcome.wire_bytes, expected.wire_bytes);
      }
      // The parameters of stage s are trained on rank s mod ranks: stem 4, join 2, body 2, head 1.
      const std::vector<int> stage_of = {0, 0, 0, 0, 1, 1, 2, 2, 3};
      for (size_t i = 0; i < stage_of.size(); ++i) {
        EXPECT_TRUE(
            at::equal(outcomes[static_cast<size_t>(stage_of[i] % ranks)].parameters[i], expected.parameters[i]))
            << training.codec << ", parameter " << i;
      }
    }
  }
}

/// What every rank of a training throws whose setup one rank changes.
std::vector<std::string> errors_of(const std::function<void(int rank, PipelineSetup& setup)>& change) {
  const auto data = batches();
  std::vector<OwnNetwork> networks(4);
  return Ranks(4, std::chrono::seconds(10)).run([&](Group& group) {
    const Training training{"none"};
    PipelineSetup setup = training.setup(networks[static_cast<size_t>(group.rank())]);
    change(group.rank(), setup);
    Pipeline pipeline(std::move(setup), borrowed(group));
    for (const auto& batch : data) pipeline.train(batch.inputs, batch.targets, batch.ids);
  });
}

TEST(DistributedPipeline, EveryRankHearsWhatOneCannotDo) {
  EXPECT_THAT(errors_of([](int rank, PipelineSetup& setup) {
                if (rank == 2) setup.micro_batches = 3;
              }),
              Each(HasSubstr("micro_batches = ")));
  EXPECT_THAT(errors_of([](int rank, PipelineSetup& setup) {
                if (rank == 2) setup.replicas = 3;
              }),
              Each(HasSubstr("replicas = ")));
  EXPECT_THAT(errors_of([](int rank, PipelineSetup& setup) {
                setup.boundaries[1].links.activations = make_link("topk:0.5", rank == 2 ? "ef:0.9" : "ef:0.1");
              }),
              Each(HasSubstr("ef:0.9")));
  EXPECT_THAT(errors_of([](int rank, PipelineSetup& setup) {
                if (rank == 2) setup.replica_link = make_link("quant:8");
              }),
              Each(HasSubstr("replicas = codec ")));
  EXPECT_THAT(errors_of([](int /*rank*/, PipelineSetup& setup) { setup.replicas = 3; }),
              Each(HasSubstr("replicas: expected a number that divides the 4 processes, found 3")));
  EXPECT_THAT(errors_of([](int rank, PipelineSetup& setup) {
                if (rank == 1) setup.stages[1] = StageModule();
              }),
              Each(HasSubstr("stage 1: is empty, but rank 1 runs it")));
  EXPECT_THAT(errors_of([](int rank, PipelineSetup& setup) {
                if (rank == 2) setup.stages[2] = torch::nn::Linear(13, 8);
              }),
              Each(HasSubstr("stage 2 cannot run on what stage 1 gives, [1, 12]")));
  EXPECT_THAT(errors_of([](int rank, PipelineSetup& setup) {
                if (rank == 3) {
                  setup.loss = [](const at::Tensor& output, const at::Tensor& /*targets*/) { return output; };
                }
              }),
              Each(HasSubstr("the loss is a tensor of shape [12, 5], expected a scalar")));
  EXPECT_THAT(errors_of([](int rank, PipelineSetup& setup) {
                int calls = 0;
                if (rank != 2) return;
                setup.stages[2] = [calls](const at::Tensor& x) mutable {
                  if (++calls > 3) throw std::runtime_error("the user's own error");
                  return x.narrow(1, 0, 8);
                };
              }),
              Each(HasSubstr("the user's own error")));
}

TEST(DistributedPipeline, NoBatchFollowsOneThatFailed) {
  const auto data = batches();
  std::vector<OwnNetwork> networks(4);
  const auto errors = Ranks(4, std::chrono::seconds(10)).run([&](Group& group) {
    PipelineSetup setup = Training{"none"}.setup(networks[static_cast<size_t>(group.rank())]);
    setup.loss = [](const at::Tensor& /*output*/, const at::Tensor& /*targets*/) -> at::Tensor {
      throw std::runtime_error("the user's own error");
    };
    Pipeline pipeline(std::move(setup), borrowed(group));
    EXPECT_ANY_THROW(pipeline.train(data[0].inputs, data[0].targets, data[0].ids));
    pipeline.train(data[1].inputs, data[1].targets, data[1].ids);
  });
  EXPECT_THAT(errors, Each(HasSubstr("an earlier batch failed, and with it the group of processes")));
}

/// Trains replicas with their halves of every batch. Gives each rank's parameters and losses.
std::vector<Outcome> train_replicas(int ranks, const std::string& codec, std::vector<std::string>& errors,
                                    int other_weights = -1) {
  const auto data = batches();
  std::vector<OwnNetwork> networks;
  for (int rank = 0; rank < ranks; ++rank) networks.emplace_back(rank == other_weights ? 2 : 1);
  std::vector<Outcome> outcomes(static_cast<size_t>(ranks));
  errors = Ranks(ranks).run([&](Group& group) {
    const auto rank = static_cast<size_t>(group.rank());
    PipelineSetup setup = Training{"none"}.setup(networks[rank], ranks / 2);
    setup.replicas = 2;
    setup.replica_link = make_link(codec, "none");
    Pipeline pipeline(std::move(setup), borrowed(group));
    torch::optim::SGD optimizer(pipeline.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    for (const auto& batch : data) {
      optimizer.zero_grad();
      const int64_t first = pipeline.replica() * 6;
      const StepReport report =
          pipeline.gather(pipeline.train(batch.inputs.narrow(0, first, 6), batch.targets.narrow(0, first, 6)));
      EXPECT_EQ(report.rows, 12);
      optimizer.step();
      outcomes[rank].losses.push_back(report.loss.value());
    }
    outcomes[rank].parameters = networks[rank].parameters();
  });
  return outcomes;
}

TEST(DistributedPipeline, ReplicasAverageTheirGradients) {
  OwnNetwork whole;
  torch::optim::SGD optimizer(whole.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  std::vector<double> losses;
  for (const auto& batch : batches()) {
    optimizer.zero_grad();
    const at::Tensor loss = test::mean_square(whole(batch.inputs), batch.targets);
    loss.backward();
    optimizer.step();
    losses.push_back(loss.item<double>());
  }
  std::vector<std::string> errors;
  const auto two = train_replicas(2, "none", errors);
  ASSERT_THAT(errors, Each(""));
  const auto four = train_replicas(4, "none", errors);
  ASSERT_THAT(errors, Each(""));
  for (size_t step = 0; step < losses.size(); ++step) EXPECT_NEAR(two[0].losses[step], losses[step], 1e-5);
  EXPECT_EQ(two[0].losses, four[3].losses);
  const std::vector<int> stage_of = {0, 0, 0, 0, 1, 1, 2, 2, 3};
  for (size_t i = 0; i < stage_of.size(); ++i) {
    const at::Tensor& expected = two[0].parameters[i];
    EXPECT_TRUE(at::allclose(expected, whole.parameters()[i], 1e-4, 1e-5)) << i;
    EXPECT_TRUE(at::equal(two[1].parameters[i], expected)) << i;
    EXPECT_TRUE(at::equal(four[static_cast<size_t>(stage_of[i] % 2)].parameters[i], expected)) << i;
    EXPECT_TRUE(at::equal(four[static_cast<size_t>(2 + stage_of[i] % 2)].parameters[i], expected)) << i;
  }
}

TEST(DistributedPipeline, ReplicasKeepTheSameWeightsWithACodecBetweenThem) {
  std::vector<std::string> errors;
  const auto plain = train_replicas(2, "none", errors);
  const auto compressed = train_replicas(2, "quant:4", errors);
  ASSERT_THAT(errors, Each(""));
  for (size_t i = 0; i < plain[0].parameters.size(); ++i) {
    EXPECT_TRUE(at::equal(compressed[0].parameters[i], compressed[1].parameters[i]));
    EXPECT_FALSE(at::equal(compressed[0].parameters[i], plain[0].parameters[i]));
  }
}

TEST(DistributedPipeline, ReplicasExpectTheSameWeightsAtFirst) {
  std::vector<std::string> errors;
  train_replicas(2, "none", errors, 1);
  EXPECT_THAT(errors, Each(HasSubstr("stage 0: the weights of rank 1 are not those of rank 0")));
}

/// Refuses its third message.
class ThrowingCodec : public Codec {
 public:
  ThrowingCodec() : Codec({kFirstOwnId, "throws"}) {}

 protected:
  PayloadSize do_payload_size(const MessageMeta& meta) const override { return {meta.elements() * 4, true}; }
  void do_encode(std::span<const float> x, const MessageMeta& /*meta*/, const MessageContext& context,
                 ByteWriter& out) const override {
    if (context.step == 2) throw std::runtime_error("the codec's own error");
    std::memcpy(out.claim(x.size_bytes()).data(), x.data(), x.size_bytes());
  }
  void do_decode(ByteReader& in, const MessageMeta& /*meta*/, const MessageContext& /*context*/,
                 std::span<float> out) const override {
    std::memcpy(out.data(), in.take(out.size_bytes()).data(), out.size_bytes());
  }
};

TEST(DistributedPipeline, EveryRankHearsOfACodecThatThrows) {
  EXPECT_THAT(errors_of([](int /*rank*/, PipelineSetup& setup) {
                const auto codec = std::make_shared<ThrowingCodec>();
                setup.boundaries[1] = Boundary("join", make_link(codec, "none"), make_link("none"));
              }),
              Each(HasSubstr("the codec's own error")));
}

}  // namespace
}  // namespace strait
