#pragma once

#include <gmock/gmock.h>

#include "strait/checkpoint/checkpoint_parts.h"
#include "tests/support/temp_dir.h"
#include "tests/train/observer.h"
#include "tests/train/state.h"
#include "tests/transport/ranks.h"

namespace strait::test {

/// Gives a model of the same weights at every call.
using ModelMaker = std::function<Model()>;
using RankWork = std::function<void(Trainer& trainer, Group& group)>;

/// A trainer on every rank. Gives what each threw.
inline std::vector<std::string> on_ranks(int ranks, const ModelMaker& make, const TrainerOptions& options,
                                         const RankWork& work) {
  std::vector<Model> models;  // drawn here: ranks are threads, and share a generator
  for (int rank = 0; rank < ranks; ++rank) models.push_back(make());
  return Ranks(ranks).run([&](Group& group) {
    const std::shared_ptr<Group> shared(&group, [](Group*) {});
    Trainer trainer(models[static_cast<size_t>(group.rank())], options, shared);
    work(trainer, group);
  });
}

/// Four stages on two ranks, two on each.
inline TrainerOptions over_two_ranks(TrainerOptions options) {
  options.pipeline.schedule = "interleaved";
  options.pipeline.stages_per_rank = 2;
  return options;
}

/// The whole network as each replica has it at the end, and the first process's metrics.
struct TrainedReplicas {
  std::vector<State> replicas;
  std::vector<EpochMetrics> epochs;
};

inline TrainedReplicas train_replicas(int ranks, const ModelMaker& make, const TrainerOptions& options,
                                      const DataSplits& splits) {
  const int replicas = options.pipeline.replicas;
  TrainedReplicas trained;
  trained.replicas.resize(static_cast<size_t>(replicas));
  const auto errors = on_ranks(ranks, make, options, [&](Trainer& trainer, Group& group) {
    Observer observer;
    EXPECT_TRUE(trainer.train(splits, observer));
    const Model& model = trainer.collect_model();
    const RankTopology place{group.rank(), ranks, replicas};
    if (place.rank % place.pipeline_ranks() == 0) {
      trained.replicas[static_cast<size_t>(place.replica())] = copy_of(model);
    }
    if (place.rank == 0) trained.epochs = observer.epochs;
  });
  EXPECT_THAT(errors, testing::Each(testing::IsEmpty()));
  return trained;
}

/// Trains until a stop, and from there to the end with new trainers, perhaps in other numbers.
class ResumeOnRanks : public testing::Test {
 protected:
  ResumeOnRanks(ModelMaker make, DataSplits splits) : splits_(std::move(splits)), make_(std::move(make)) {}

  void stop_after(int batches, int ranks, const TrainerOptions& options) {
    const auto errors = on_ranks(ranks, make_, options, [&](Trainer& trainer, Group& group) {
      trainer.keep_checkpoints(CheckpointWriter(dir_ / "checkpoint", group.rank(), {}), "");
      Observer observer(group.rank() == 0 ? batches : -1);
      EXPECT_FALSE(trainer.train(splits_, observer));
    });
    EXPECT_THAT(errors, testing::Each(testing::IsEmpty()));
  }

  /// Goes on from the newest checkpoint; a warm start leaves its feedback state behind. Gives what each rank
  /// threw; `state` is that of the first.
  std::vector<std::string> go_on(int ranks, const TrainerOptions& options, State& state,
                                 bool warm_start = false) {
    return on_ranks(ranks, make_, options, [&](Trainer& trainer, Group& group) {
      const RankTopology place{group.rank(), ranks, options.pipeline.replicas};
      const auto parts = parts_in(dir_ / "checkpoint");
      const ResumePoint point = find_resume_point({parts}, place);
      ASSERT_TRUE(point.entry.has_value());
      const Checkpoint from(folders_of(parts, *point.entry, needed_parts(point.writers, place)).value(), place);
      warm_start ? trainer.warm_start(from, true) : trainer.resume(from);
      Observer observer;
      EXPECT_TRUE(trainer.train(splits_, observer));
      const Model& model = trainer.collect_model();
      if (place.rank == 0) state = copy_of(model);
    });
  }

  const TempDir dir_;

 private:
  const DataSplits splits_;
  const ModelMaker make_;
};

}  // namespace strait::test
