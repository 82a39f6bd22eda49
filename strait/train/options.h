#pragma once

#include <string>

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

/// The [train] table of a configuration.
struct TrainOptions {
  int epochs = 100;
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  std::string device = "auto";  ///< auto | cpu | cuda
  int threads = 0;              ///< 0 = all cores, shared between local stages

  bool operator==(const TrainOptions&) const = default;
};

}  // namespace strait
