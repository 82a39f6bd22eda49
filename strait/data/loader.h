#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "strait/base/workers.h"
#include "strait/data/dataset.h"

namespace strait {

/// Makes the batches of one pass over a data set in a thread of its own, a few ahead of the consumer, so
/// that reading and augmentation never hold up the network.
class Loader {
 public:
  /// What one pass over the data is.
  struct Pass {
    std::vector<int64_t> order;                ///< sample ids in the order of the pass
    int64_t batch_size = 1;                    ///< the last batch may be shorter
    std::optional<uint64_t> augmentation_key;  ///< none: samples come as they are
    int64_t ahead = 3;                         ///< batches made before they are asked for
    bool ids_only = false;                     ///< batches without tensors
  };

  /// Begins to make batches.
  Loader(std::shared_ptr<const Dataset> data, Pass pass);

  /// How many batches the pass has.
  int64_t batches() const;

  /// The next batch, or nothing after the last. Rethrows what the data set threw.
  std::optional<Batch> next();

  /// The samples of the batch that next() gives next; empty after the last.
  std::vector<int64_t> next_ids() const;

  /// Time that next() spent waiting for the data, all calls together.
  double waited_seconds() const { return waited_seconds_; }

 private:
  std::span<const int64_t> batch_from(size_t first) const;
  void begin_batch();

  std::shared_ptr<const Dataset> data_;
  Pass pass_;
  std::deque<Batch> begun_;  ///< that next() will give; those at the front are made
  size_t taken_ = 0;         ///< samples handed out
  double waited_seconds_ = 0;
  Workers worker_{1};
};

}  // namespace strait
