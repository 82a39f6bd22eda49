#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace strait {

struct OptimizerOptions {
  std::string kind = "sgd";
  double lr = 0.01;
  double momentum = 0.9;
  double weight_decay = 5e-4;

  bool operator==(const OptimizerOptions&) const = default;
};

/// The learning rate over the epochs.
struct ScheduleOptions {
  std::string kind = "cosine";  ///< cosine | constant
  int t_max = 200;              ///< cosine: epochs of half a period (PyTorch's CosineAnnealingLR)

  bool operator==(const ScheduleOptions&) const = default;
};

/// The [checkpoint] table of a configuration: when a run leaves a checkpoint, and which of them stay. Besides,
/// it leaves one at its end and when it is stopped. Changes nothing of what a run computes.
struct CheckpointOptions {
  int every_epochs = 1;               ///< after every so many epochs; 0 = none on that account
  int64_t every_steps = 0;            ///< after every so many optimizer steps; 0 = none on that account
  int keep = 1;                       ///< the newest so many stay
  std::vector<int> keep_epochs = {};  ///< checkpoints taken before these epochs are made, and stay for good

  bool operator==(const CheckpointOptions&) const = default;
};

/// The [train] table of a configuration.
struct TrainOptions {
  int epochs = 100;
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  double clip_norm = 0;         ///< largest 2-norm of the whole network's gradient; 0 = any
  std::string device = "auto";  ///< auto | cpu | cuda
  int threads = 0;              ///< 0 = all cores, shared between local stages

  bool operator==(const TrainOptions&) const = default;
};

}  // namespace strait
