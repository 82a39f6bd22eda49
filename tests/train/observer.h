#pragma once

#include <vector>

#include "strait/train/trainer.h"

namespace strait::test {

/// Asks for a stop after so many batches, and keeps the metrics.
struct Observer : TrainObserver {
  explicit Observer(int stop_after = -1) : left(stop_after) {}
  void on_batch(int, const char*, int64_t, int64_t, double) override { --left; }
  void on_epoch(const EpochMetrics& metrics) override { epochs.push_back(metrics); }
  bool should_stop() override { return left == 0; }
  int left;
  std::vector<EpochMetrics> epochs;
};

}  // namespace strait::test
