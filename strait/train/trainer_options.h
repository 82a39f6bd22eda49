#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "strait/boundary/options.h"
#include "strait/pipeline/options.h"
#include "strait/run/metrics.h"
#include "strait/train/automatic_codecs.h"
#include "strait/train/learning_rate.h"
#include "strait/train/optimizer.h"
#include "strait/train/options.h"
#include "strait/train/task.h"

namespace strait {

/// Everything that training a network needs to know.
struct TrainerOptions {
  uint64_t seed = 0;               ///< of every random number after the initial weights
  int64_t batch_size = 100;        ///< of all replicas together
  TrainOptions train;              ///< [train] of a configuration
  PipelineOptions pipeline;        ///< [pipeline] of a configuration
  CompressionOptions compression;  ///< [compression] of a configuration
  std::vector<std::string> cuts;   ///< see cut_into_stages()
  Task task = classification();    ///< loss and metrics

  /// Makes an optimizer of a program's own, one for the parameters of each stage in this process; where it is
  /// empty, `train` says which.
  std::function<std::unique_ptr<Optimizer>(const std::vector<at::Tensor>& parameters)> optimizer = {};

  /// Of a program's own, times train.optimizer.lr; likewise.
  RateSchedule schedule = {};

  /// How long the steps of an epoch would have taken over other networks; `before` is what it said of the epoch
  /// before. Called on every process with the same. Where it is empty, metrics have nothing of that.
  std::function<std::vector<NetworkMetrics>(const EpochMetrics& epoch,
                                            const std::vector<NetworkMetrics>& before)>
      over_networks = {};

  /// Chooses the codecs of the directions whose codec is kAutoCodec; where there are some, it is needed.
  ChooseCodecs choose_codecs = {};

  /// Whether the links for which it chooses are known to be no limit; what the first process knows counts.
  bool links_are_no_limit = false;
};

}  // namespace strait
