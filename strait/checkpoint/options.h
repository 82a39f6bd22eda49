#pragma once

#include <cstdint>
#include <vector>

namespace strait {

/// The [checkpoint] table of a configuration: when a run leaves a checkpoint, and which of them stay. Besides,
/// it leaves one at its end and when it is stopped. Changes nothing of what a run computes.
struct CheckpointOptions {
  int every_epochs = 1;               ///< after every so many epochs; 0 = none on that account
  int64_t every_steps = 0;            ///< after every so many optimizer steps; 0 = none on that account
  int keep = 1;                       ///< the newest so many stay
  std::vector<int> keep_epochs = {};  ///< checkpoints taken before these epochs are made, and stay for good
  int copies = -1;                    ///< ranks that keep each part besides; see kCopiesByMachines

  bool operator==(const CheckpointOptions&) const = default;
};

}  // namespace strait
