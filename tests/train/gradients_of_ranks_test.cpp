#include "strait/train/gradients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/tied_network.h"
#include "tests/transport/ranks.h"

namespace strait {
namespace {

using test::copy_of;
using test::expect_equal;
using test::Ranks;
using test::State;
using test::tied_data;
using test::tied_model;
using testing::Each;
using testing::IsEmpty;

TEST(Gradients, TiesClippingAndDropoutGiveTheBitsOfOneProcess) {
  for (const int micro_batches : {1, 4}) {
    const TrainerOptions all = test::tied_options(micro_batches, 0.5);
    const State expected = test::tied_state_after(all);
    std::vector<Model> models;  // drawn here: ranks are threads, and share a generator
    for (int rank = 0; rank < 4; ++rank) models.push_back(tied_model());
    const DataSplits splits = tied_data();
    State got;
    const auto errors = Ranks(4).run([&](Group& group) {
      const std::shared_ptr<Group> shared(&group, [](Group*) {});
      Trainer trainer(models[static_cast<size_t>(group.rank())], all, shared);
      TrainObserver observer;
      trainer.train(splits, observer);
      const Model& model = trainer.collect_model();
      if (group.rank() == 0) got = copy_of(model);
    });
    EXPECT_THAT(errors, Each(IsEmpty()));
    expect_equal(got, expected);
  }
}

}  // namespace
}  // namespace strait
