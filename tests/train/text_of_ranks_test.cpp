#include <gmock/gmock.h>

#include "tests/train/token_training.h"
#include "tests/transport/ranks.h"

namespace strait {
namespace {

using test::copy_of;
using test::expect_equal;
using test::Observer;
using test::State;
using test::token_model;
using test::token_options;
using test::token_splits;
using test::Trained;
using test::trained;
using testing::Each;
using testing::IsEmpty;

TEST(Accumulate, ReplicasExchangeOnceAStep) {
  TrainerOptions options = token_options();
  options.train.accumulate = 2;
  const Trained expected = trained(options);
  options.pipeline.replicas = 2;
  options.pipeline.schedule = "gpipe";
  options.cuts = {};
  std::vector<Model> models = {token_model(), token_model()};
  const DataSplits data = token_splits(21);  // a last batch of one sample is left out
  const DataSplits whole = token_splits();
  for (const auto& used : {whole, data}) {
    std::vector<State> states(2);
    std::vector<EpochMetrics> epochs;
    models = {token_model(), token_model()};
    const auto errors = test::Ranks(2).run([&](Group& group) {
      const std::shared_ptr<Group> shared(&group, [](Group*) {});
      Trainer trainer(models[static_cast<size_t>(group.rank())], options, shared);
      Observer observer;
      EXPECT_TRUE(trainer.train(used, observer));
      states[static_cast<size_t>(group.rank())] = copy_of(trainer.collect_model());
      if (group.rank() == 0) epochs = observer.epochs;
    });
    EXPECT_THAT(errors, Each(IsEmpty()));
    expect_equal(states[0], states[1]);
    ASSERT_EQ(epochs.size(), 2U);
    const bool all = used.train->size() == 22;
    EXPECT_EQ(epochs[0].steps, all ? 3 : 2);
    EXPECT_NEAR(epochs[0].samples_per_second * epochs[0].seconds, all ? 22 : 20, 1e-6);
    EXPECT_EQ(epochs[0].boundaries.back().gradients.messages, static_cast<uint64_t>(all ? 6 : 4));
    if (!all) continue;
    for (size_t i = 0; i < states[0].size(); ++i) {
      EXPECT_TRUE(at::allclose(states[0][i].second, expected.state[i].second, 1e-3, 1e-4))
          << states[0][i].first;
    }
  }
}

}  // namespace
}  // namespace strait
