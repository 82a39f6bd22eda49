#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "strait/run/metrics.h"

namespace strait {

/// What a line of metrics.jsonl says of an epoch, as far as its progress goes.
struct EpochProgress {
  int done = 0;                    ///< epochs, with this one
  double train_loss = 0;           ///< mean over the epoch
  std::optional<Evaluation> test;  ///< of the test set, where it was scored
};

/// Follows the metrics.jsonl that another process writes.
class MetricsTail {
 public:
  /// What the file holds now belongs to the past and is not reported.
  explicit MetricsTail(std::filesystem::path file);

  /// The epochs that were added since the last call. A file that has become shorter was cut back or begun
  /// anew; what is left of it belongs to the past likewise. A line that is not an epoch's is passed over.
  std::vector<EpochProgress> read_new();

 private:
  std::uintmax_t size() const;  ///< 0 where there is no file

  std::filesystem::path file_;
  std::uintmax_t seen_;  ///< bytes
};

}  // namespace strait
