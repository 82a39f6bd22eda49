// Schedules that step after every micro-batch, a stage in each process against all of them in one.

#include <gmock/gmock.h>

#include "tests/train/observer.h"
#include "tests/train/tied_network.h"
#include "tests/transport/ranks.h"

namespace strait {
namespace {

using testing::Each;
using testing::IsEmpty;

/// Four layers with dropout, and no tie.
Model untied_model() {
  Model model = test::tied_model();
  model.ties.clear();
  return model;
}

struct DelayedScheme {
  LinkOptions activations;
  LinkOptions gradients;
  bool reuse_indices = false;
};

const std::vector<DelayedScheme> kDelayedSchemes = {
    {{"none", "none"}, {"none", "none"}},
    {{"quant:4,scope=sample,rounding=stochastic", "none"}, {"topk:0.3", "ef"}},
    {{"topk:0.3", "ef21"}, {"topk:0.3", "ef21"}},
    {{"quant:4,scope=sample", "aq-sgd"}, {"topk:0.3", "ef-mixed"}},
    {{"topk:0.3", "none"}, {"topk:0.3", "none"}, true}};

/// Batches of 6, of which the last has 2; evaluated within the epoch.
TrainerOptions delayed_options(const std::string& schedule, int micro_batches, const DelayedScheme& scheme) {
  TrainerOptions options = test::tied_options(micro_batches, 0.5);
  options.batch_size = 6;
  options.train.evaluate_every = 4;
  options.pipeline.schedule = schedule;
  options.compression.activations = scheme.activations;
  options.compression.gradients = scheme.gradients;
  options.compression.reuse_indices = scheme.reuse_indices;
  return options;
}

struct DelayedTraining {
  test::State state;
  std::vector<EpochMetrics> epochs;
};

DelayedTraining train_as_one_of(const TrainerOptions& options, Model model, const DataSplits& splits,
                                std::shared_ptr<Group> group = std::make_shared<SingleProcessGroup>()) {
  Trainer trainer(std::move(model), options, std::move(group));
  test::Observer observer;
  EXPECT_TRUE(trainer.train(splits, observer));
  return {test::copy_of(trainer.collect_model()), observer.epochs};
}

TEST(StepsPerMicroBatch, FourProcessesGiveTheBitsOfOne) {
  std::vector<TrainerOptions> all;
  for (const char* schedule : {"pipedream", "xpipe"}) {
    for (const auto& scheme : kDelayedSchemes) {
      for (const int micro_batches : {1, 3}) all.push_back(delayed_options(schedule, micro_batches, scheme));
    }
  }
  const DataSplits splits = test::tied_data();
  std::vector<std::vector<Model>> models;  // drawn here, as the data: ranks are threads, and share a generator
  for (size_t i = 0; i < all.size(); ++i) {
    models.push_back({untied_model(), untied_model(), untied_model(), untied_model()});
  }
  std::vector<DelayedTraining> found(all.size());
  const auto errors = test::Ranks(4).run([&](Group& group) {
    const std::shared_ptr<Group> shared(&group, [](Group*) {});
    for (size_t i = 0; i < all.size(); ++i) {
      DelayedTraining mine =
          train_as_one_of(all[i], models[i][static_cast<size_t>(group.rank())], splits, shared);
      if (group.rank() == 0) found[i] = std::move(mine);
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
  for (size_t i = 0; i < all.size(); ++i) {
    const DelayedTraining expected = train_as_one_of(all[i], untied_model(), splits);
    test::expect_equal(found[i].state, expected.state);
    ASSERT_EQ(found[i].epochs.size(), 2U) << i;
    for (size_t epoch = 0; epoch < 2; ++epoch) {
      const EpochMetrics& mine = found[i].epochs[epoch];
      const EpochMetrics& theirs = expected.epochs[epoch];
      EXPECT_EQ(mine.train.loss, theirs.train.loss) << i;
      EXPECT_EQ(mine.total(Direction::gradient).wire_bytes, theirs.total(Direction::gradient).wire_bytes) << i;
      ASSERT_EQ(mine.evaluations.size(), theirs.evaluations.size()) << i;
      for (size_t k = 0; k < mine.evaluations.size(); ++k) {
        EXPECT_EQ(mine.evaluations[k].test.on.loss, theirs.evaluations[k].test.on.loss) << i;
      }
    }
  }
}

}  // namespace
}  // namespace strait
