// Replicas of a pipeline, here as threads over real connections, against one process and against each other.

#include "strait/pipeline/data_parallel.h"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "strait/pipeline/schedules.h"
#include "tests/support/largest.h"
#include "tests/train/replicas.h"
#include "tests/train/tied_network.h"

namespace strait {
namespace {

using test::copy_of;
using test::expect_close;
using test::expect_equal;
using test::largest;
using test::Observer;
using test::on_ranks;
using test::over_two_ranks;
using test::Ranks;
using test::State;
using test::tied_data;
using test::tied_model;
using test::TrainedReplicas;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

TrainerOptions options_for(int replicas, int64_t batch_size, const LinkOptions& link = {}) {
  TrainerOptions options;
  options.seed = 3;
  options.batch_size = batch_size;
  options.train.epochs = 2;
  options.train.device = "cpu";
  options.train.clip_norm = 0.5;
  options.train.optimizer.lr = 0.1;
  options.pipeline.replicas = replicas;
  options.compression.replicas = link;
  options.cuts = {"embed", "a", "b"};
  return options;
}

/// The same with every boundary compressed, with state at its ends.
TrainerOptions compressed(int replicas, int64_t batch_size, const LinkOptions& link) {
  TrainerOptions options = options_for(replicas, batch_size, link);
  options.compression.activations = {"quant:8,rounding=stochastic", "none"};
  options.compression.gradients = {"topk:0.5", "ef21"};
  return options;
}

TrainedReplicas train_replicas(int ranks, const TrainerOptions& options) {
  return test::train_replicas(ranks, tied_model, options, tied_data());
}

TrainedReplicas train_alone(const TrainerOptions& options) {
  Trainer trainer(tied_model(), options);
  Observer observer;
  trainer.train(tied_data(), observer);
  return {{copy_of(trainer.collect_model())}, observer.epochs};
}

TEST(DataParallel, TrainWhatOneProcessTrainsWithTheWholeBatch) {
  const TrainedReplicas expected = train_alone(options_for(1, 8));
  const TrainerOptions two = options_for(2, 8);
  for (const auto& [ranks, options] :
       {std::pair(2, two), std::pair(4, over_two_ranks(two)), std::pair(8, two)}) {
    const TrainedReplicas got = train_replicas(ranks, options);
    expect_close(got.replicas[0], expected.replicas[0]);
    expect_equal(got.replicas[1], got.replicas[0]);
    ASSERT_EQ(got.epochs.size(), 2U);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(got.epochs[i].steps, 3);
      EXPECT_NEAR(got.epochs[i].train.loss, expected.epochs[i].train.loss, 1e-5);
      EXPECT_EQ(got.epochs[i].train.metrics, expected.epochs[i].train.metrics);
      EXPECT_NEAR(got.epochs[i].test->on.loss, expected.epochs[i].test->on.loss, 1e-5);
      EXPECT_EQ(got.epochs[i].test->samples, 20);
      EXPECT_EQ(got.epochs[i].boundaries[0].activations.raw_bytes,
                expected.epochs[i].boundaries[0].activations.raw_bytes);
    }
  }
}

/// It has no gradient, to be clipped or to be moved by, whatever weight decay says.
TEST(DataParallel, AFrozenLayerStaysAsItIs) {
  const DataSplits splits = tied_data();
  const auto errors = on_ranks(2, tied_model, options_for(2, 8), [&](Trainer& trainer, Group&) {
    std::vector<at::Tensor> before;
    const auto frozen = trainer.model().layers[1].layer->parameters();
    for (auto parameter : frozen) before.push_back(parameter.requires_grad_(false).clone());
    Observer observer;
    EXPECT_TRUE(trainer.train(splits, observer));
    for (size_t i = 0; i < frozen.size(); ++i) EXPECT_TRUE(at::equal(frozen[i], before[i])) << i;
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(DataParallel, GiveTheBitsOfAsManyMicroBatches) {
  TrainerOptions one = options_for(1, 10);
  one.pipeline.micro_batches = 2;
  expect_equal(train_replicas(2, options_for(2, 10)).replicas[0], train_alone(one).replicas[0]);
}

TEST(DataParallel, KeepTheSameBitsWhateverTheCodec) {
  for (const LinkOptions& link : {LinkOptions{"topk:0.1", "ef"}, LinkOptions{"topk:0.1", "ef21"},
                                  LinkOptions{"quant:4,rounding=stochastic", "none"}}) {
    const auto [states, epochs] = train_replicas(3, compressed(3, 8, link));
    expect_equal(states[1], states[0]);
    expect_equal(states[2], states[0]);
    EXPECT_FALSE(at::equal(states[0][0].second, tied_model().state()[0].second));
    EXPECT_EQ(epochs.back().steps, 3);  // 8, 8 and 4 samples
  }
  const TrainedReplicas pipelines = train_replicas(4, over_two_ranks(compressed(2, 8, {"topk:0.1", "ef21"})));
  expect_equal(pipelines.replicas[1], pipelines.replicas[0]);
}

/// What a replica's messages are seen as, from the definitions: of 30 elements the 6 largest.
class Sent {
 public:
  explicit Sent(std::string feedback) : feedback_(std::move(feedback)) {}

  at::Tensor operator()(const at::Tensor& x) {
    if (feedback_ == "ef") {
      const at::Tensor sum = x + state_;
      const at::Tensor seen = largest(sum, 6);
      state_ = sum - seen;
      return seen;
    }
    if (feedback_ == "ef21") return state_ = state_ + largest(x - state_, 6);
    return largest(x, 6);
  }

 private:
  std::string feedback_;
  at::Tensor state_ = at::zeros({1, 30});
};

TEST(DataParallel, ExchangeTheSumOfWhatTheirMessagesAreSeenAs) {
  constexpr int kReplicas = 3;
  for (const std::string feedback : {"none", "ef", "ef21"}) {
    at::manual_seed(8);
    std::vector<Sent> seen_of(kReplicas, Sent(feedback));
    std::vector<std::vector<at::Tensor>> gradients;  // of a step, by replica
    std::vector<at::Tensor> sums;
    for (int step = 0; step < 5; ++step) {
      const bool compressed = step > 0;
      at::Tensor sum;
      gradients.emplace_back();
      for (auto& seen : seen_of) {
        gradients.back().push_back(at::randn({1, 30}));
        const at::Tensor part = compressed ? seen(gradients.back().back()) : gradients.back().back();
        sum = sum.defined() ? sum + part : part;
      }
      sums.push_back(sum);
    }
    const auto errors = Ranks(kReplicas).run([&](Group& group) {
      // Two parameters of one stage, which are one message.
      const std::vector<at::Tensor> parameters = {torch::zeros({4, 5}).requires_grad_(),
                                                  torch::zeros({10}).requires_grad_()};
      DataParallel data_parallel(group, {group.rank(), kReplicas, kReplicas}, 1, {{0, "all", parameters}},
                                 make_link("topk:0.2", feedback), 3);
      for (size_t step = 0; step < sums.size(); ++step) {
        const at::Tensor& own = gradients[step][static_cast<size_t>(group.rank())];
        parameters[0].mutable_grad() = own.narrow(1, 0, 20).reshape({4, 5}).clone();
        parameters[1].mutable_grad() = own.narrow(1, 20, 10).reshape({10}).clone();
        data_parallel.sum_gradients(step, {.training = true, .compressed = step > 0});
        const at::Tensor got =
            at::cat({parameters[0].grad().view({1, 20}), parameters[1].grad().view({1, 10})}, 1);
        EXPECT_TRUE(at::equal(got, sums[step])) << feedback << ", step " << step << ", rank " << group.rank();
      }
    });
    EXPECT_THAT(errors, Each(IsEmpty()));
  }
}

/// Every message of two epochs and more, of 8 bits per element where its sample has been seen.
TrainerOptions by_sample(int replicas) {
  TrainerOptions options = options_for(replicas, 8);
  options.train.epochs = 4;
  options.compression.activations = {"quant:8,scope=sample", "aq-sgd"};
  return options;
}

TEST(DataParallel, ASampleComesToTheReplicaThatHasItsBuffer) {
  for (const int replicas : {2, 4}) {
    const TrainedReplicas got = train_replicas(replicas, by_sample(replicas));
    ASSERT_EQ(got.epochs.size(), 4U);
    for (size_t epoch = 0; epoch < 4; ++epoch) {
      for (const char* cut : {"embed", "a", "b"}) {
        const auto& boundary = *std::ranges::find(got.epochs[epoch].boundaries, cut, &BoundaryTraffic::name);
        const Traffic& traffic = boundary.activations;
        const uint64_t row = epoch == 0 ? test::kWidth * 4 : 8 + test::kWidth;  // bytes
        EXPECT_EQ(traffic.messages, 3U * static_cast<uint64_t>(replicas));
        EXPECT_EQ(traffic.wire_bytes, traffic.messages * kFrameHeaderSize + 20 * row)
            << replicas << " replicas, epoch " << epoch << ", " << cut;
      }
    }
    for (const State& other : got.replicas) expect_equal(other, got.replicas[0]);
  }
}

TEST(DataParallel, BuffersOfSamplesGiveTheSameBitsInMoreProcesses) {
  const TrainerOptions options = by_sample(2);
  const TrainedReplicas expected = train_replicas(2, options);
  expect_equal(train_replicas(4, over_two_ranks(options)).replicas[0], expected.replicas[0]);
  expect_equal(train_replicas(8, options).replicas[0], expected.replicas[0]);
}

TEST(DataParallel, LeaveOutALastBatchThatIsTooShort) {
  const TrainedReplicas got = train_replicas(3, options_for(3, 9));  // 9, 9 and 2 samples
  EXPECT_EQ(got.epochs.back().steps, 2);
  expect_equal(got.replicas[2], got.replicas[0]);
}

TEST(DataParallel, TheExchangeIsCounted) {
  const TrainedReplicas got = train_replicas(3, options_for(3, 9, {"topk:0.1", "ef"}));
  const BoundaryTraffic& exchange = got.epochs.back().boundaries.back();
  EXPECT_EQ(exchange.name, "replicas");
  EXPECT_EQ(exchange.activations.messages, 0U);
  EXPECT_EQ(exchange.gradients.messages, 2U * 4 * 3 * 2);  // steps, stages, replicas, others of each
  uint64_t parameters = 0;
  for (const auto& parameter : tied_model().parameters())
    parameters += static_cast<uint64_t>(parameter.numel());
  EXPECT_EQ(exchange.gradients.raw_bytes, 2 * parameters * 4 * 3 * 2);
  EXPECT_GT(exchange.gradients.ratio(), 4);
}

/// Counts the batches of training and of evaluation, and asks for a stop at one of these.
struct Stopper : TrainObserver {
  Stopper(std::string asked_in, int asked_at) : phase(std::move(asked_in)), at(asked_at) {}
  void on_batch(int, const char* in, int64_t, int64_t, double) override { last = std::pair(in, ++batches[in]); }
  bool should_stop() override { return last == std::pair(phase, at); }
  std::string phase;
  int at;
  std::pair<std::string, int> last;
  std::map<std::string, int> batches;
};

/// Trains two replicas of two ranks until the one that asks has stopped all; the batches of each rank.
std::vector<std::map<std::string, int>> stop_after(int asking, const std::string& phase, int batches,
                                                   const TrainerOptions& options) {
  std::vector<std::map<std::string, int>> done(4);
  const DataSplits splits = tied_data();
  const auto errors = on_ranks(4, tied_model, over_two_ranks(options), [&](Trainer& trainer, Group& group) {
    Stopper stopper(phase, group.rank() == asking ? batches : -1);
    EXPECT_FALSE(trainer.train(splits, stopper));
    EXPECT_EQ(trainer.state().batches % options.train.accumulate, 0);
    done[static_cast<size_t>(group.rank())] = stopper.batches;
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
  for (const auto& other : done) EXPECT_EQ(other, done.front()) << "rank " << asking << " asks in " << phase;
  return done;
}

TEST(DataParallel, TheFirstStopsAllAfterTheStepThatItBegins) {
  EXPECT_EQ(stop_after(0, "train", 1, options_for(2, 8))[0].at("train"), 2);
}

TEST(DataParallel, AnyOtherStopsAllAfterTheSameStep) {
  TrainerOptions options = options_for(2, 8);
  options.train.epochs = 100'000;  // until they stop
  for (const int asking : {1, 2, 3}) {
    EXPECT_GE(stop_after(asking, "train", 1, options)[0].at("train"), 2);
    EXPECT_GE(stop_after(asking, "test", 1, options)[0].at("test"), 2);
  }
}

TEST(DataParallel, AccumulatedStepsAreMadeWholeBeforeAllStop) {
  TrainerOptions options = options_for(2, 4);  // five batches an epoch
  options.train.accumulate = 5;
  for (const int batches : {1, 4}) EXPECT_EQ(stop_after(0, "train", batches, options)[0].at("train"), 5);
  options.train.epochs = 100'000;
  EXPECT_EQ(stop_after(3, "train", 1, options)[0].at("train") % 5, 0);
}

TEST(DataParallel, TheFirstStopsAllInEvaluation) {
  const DataSplits splits = tied_data();
  const auto errors = on_ranks(2, tied_model, options_for(2, 8), [&](Trainer& trainer, Group& group) {
    Observer observer(group.rank() == 0 ? 4 : -1);  // three of training, one of evaluation
    EXPECT_FALSE(trainer.train(splits, observer));
    EXPECT_EQ(trainer.state().epoch, 0);
    EXPECT_EQ(trainer.state().batches, 3);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(DataParallel, HearOfDivergence) {
  TrainerOptions diverging = options_for(2, 8);
  diverging.train.optimizer.lr = 1e30;
  diverging.train.clip_norm = 0;
  const DataSplits splits = tied_data();
  const auto errors = on_ranks(2, tied_model, diverging, [&](Trainer& trainer, Group&) {
    Observer observer;
    trainer.train(splits, observer);
  });
  EXPECT_THAT(errors, Each(HasSubstr("not finite")));
}

TEST(DataParallel, OtherWeightsInOneOfThemAreAnError) {
  const DataSplits splits = tied_data();
  const auto errors = on_ranks(2, tied_model, options_for(2, 8), [&](Trainer& trainer, Group& group) {
    if (group.rank() == 1) {
      const torch::NoGradGuard no_grad;
      trainer.collect_model().parameters().front().add_(1e-3);
    }
    Observer observer;
    trainer.train(splits, observer);
  });
  EXPECT_THAT(errors, Each(HasSubstr("stage embed..embed: rank 1 no longer holds the same weights")));
}

class ReplicasResume : public test::ResumeOnRanks {
 protected:
  ReplicasResume() : ResumeOnRanks(tied_model, tied_data()) {}
};

TEST_F(ReplicasResume, GivesTheSameBits) {
  const TrainerOptions by_process = compressed(2, 8, {"topk:0.1", "ef"});
  const TrainerOptions by_stages = over_two_ranks(compressed(2, 8, {"topk:0.1", "ef21"}));
  for (const auto& [ranks, options] : {std::pair(2, by_process), std::pair(4, by_stages)}) {
    std::filesystem::remove_all(dir_ / "checkpoint");
    stop_after(2, ranks, options);
    State state;
    EXPECT_THAT(go_on(ranks, options, state), Each(IsEmpty()));
    expect_equal(state, train_replicas(ranks, options).replicas[0]);
  }
}

TEST_F(ReplicasResume, TheStateOfEachReplicaGoesToOtherNumbersOfRanks) {
  const TrainerOptions options = compressed(2, 8, {"topk:0.1", "ef21"});
  stop_after(2, 4, over_two_ranks(options));
  State state;
  EXPECT_THAT(go_on(2, options, state), Each(IsEmpty()));
  expect_equal(state, train_replicas(2, options).replicas[0]);
}

TEST_F(ReplicasResume, OtherNumbersOfReplicasNeedAStartWithoutState) {
  stop_after(2, 2, options_for(2, 8));
  State state;
  EXPECT_THAT(go_on(3, options_for(3, 8), state), Each(IsEmpty()));
  expect_close(state, train_alone(options_for(1, 8)).replicas[0]);

  std::filesystem::remove_all(dir_ / "checkpoint");
  const LinkOptions link{"topk:0.1", "ef"};
  stop_after(2, 2, options_for(2, 8, link));
  EXPECT_THAT(go_on(3, options_for(3, 8, link), state),
              Each(HasSubstr("links.safetensors: has the feedback state of 2 pipeline.replicas, expected 3")));
}

TEST(ReplicasCount, TheProcessesMustFit) {
  const auto complaint = [](const PipelineOptions& options, int processes) {
    try {
      check_process_count(4, options, processes);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(complaint({.replicas = 3}, 3), "");
  EXPECT_EQ(complaint({.replicas = 3}, 12), "");
  EXPECT_EQ(complaint({.replicas = 3}, 4),
            "WORLD_SIZE (launch -n): expected 12 processes, one for each of the 4 stages that model.cuts makes "
            "in each of 3 "
            "pipeline.replicas, or 3; found 4");
  EXPECT_THAT(complaint({.replicas = 2}, 1), HasSubstr("or 2; found 1"));
  EXPECT_THAT(complaint({.schedule = "interleaved", .stages_per_rank = 2, .replicas = 2}, 8),
              HasSubstr("expected 4 processes, one for every 2 of the 4 stages"));
  TrainerOptions options = options_for(2, 8);
  EXPECT_THROW(Trainer(tied_model(), options), InputError);
}

}  // namespace
}  // namespace strait
