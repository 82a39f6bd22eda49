#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "strait/base/rng_scope.h"
#include "strait/boundary/boundary.h"
#include "strait/pipeline/stage.h"

namespace strait {

/// A batch on its way through the stages. `inputs` is read by the first stage, `targets` by the last; where
/// these are in other processes, they need not be defined.
struct StepInput {
  TensorList inputs;   ///< [B, ...] each
  at::Tensor targets;  ///< [B]
  uint64_t step = 0;   ///< optimizer steps taken before this batch
  int64_t rows = 0;    ///< B
  uint16_t mark = 0;   ///< tells the batch from others, for processes to compare; 0: not known

  /// In training, the samples' indices in the training set; for links that keep something per sample.
  std::vector<int64_t> ids = {};
  std::vector<int64_t> classes = {};   ///< of the samples; for links that keep something per class
  std::vector<int64_t> next_ids = {};  ///< of the batch after this one, where they are known
  TensorList extras = {};              ///< [B, ...] each, read by every stage behind what crosses; data

  // Where these are part of a batch, of which other executors have the rest:
  int64_t first_row = 0;  ///< row of the batch at which they begin
  int64_t all_rows = 0;   ///< of the whole batch; 0: these are all

  /// The weight of the mean loss of these rows in that of the whole batch; null: their share in its rows. Asked
  /// where the last stage is.
  std::function<double(int64_t first_row, int64_t rows)> weigh = nullptr;
};

/// A micro-batch on its way, as every stage knows it.
struct MicroBatch {
  TensorList batch_inputs;       ///< of the whole batch, where the first stage is here
  at::Tensor batch_targets;      ///< of the whole batch, where the last stage is here
  TensorList batch_extras;       ///< of the whole batch
  int64_t first_row = 0;         ///< of the batch
  int64_t rows = 0;              ///< how many
  std::vector<int64_t> ids;      ///< its own
  std::vector<int64_t> classes;  ///< of its own samples
  MessageContext context;        ///< of its messages, without a boundary
  MessageMode mode;              ///< of its messages
  RngKey draws;                  ///< of its forward passes
  double weight = 1;             ///< of its mean loss in the loss whose gradient is wanted

  /// Its rows of the inputs.
  TensorList inputs() const { return rows_of(batch_inputs); }

  /// Its rows of the extras.
  TensorList extras() const { return rows_of(batch_extras); }

  /// Its rows of the targets.
  at::Tensor targets() const { return batch_targets.narrow(0, first_row, rows); }

 private:
  TensorList rows_of(const TensorList& batch) const;
};

/// The micro-batches that are under way, the oldest first. Messages are numbered so that no two of those under
/// way have one number.
class MicroBatchQueue {
 public:
  /// Batches are cut into parts of `rows` rows, the last perhaps shorter; `seed` is the run's.
  MicroBatchQueue(int64_t rows, uint64_t seed) : rows_(rows), seed_(seed) {}

  /// The rows of a micro-batch from now on; not while any is under way.
  void set_rows(int64_t rows) {
    STRAIT_CHECK(under_way_.empty(), "{} micro-batches are under way", under_way_.size());
    rows_ = rows;
  }

  /// Adds those of a batch, which together have the gradient of the batch's mean loss, or of its share in that
  /// of a larger one; gives their number.
  int add(const StepInput& batch, MessageMode mode);

  /// The same for micro-batches of which each is a step of the optimizer: the loss is the mean over its rows,
  /// and steps and random draws are those of a batch of its own.
  int add_steps(const StepInput& batch, MessageMode mode);

  /// How many there are.
  int count() const { return static_cast<int>(under_way_.size()); }

  /// The number of the one at a position, 0 being the oldest.
  int number(int position) const;

  /// The micro-batch of a number, which stays in its place until it is dropped.
  const MicroBatch& at(int number) const;

  /// Drops the oldest but for `count`.
  void keep(int count);

  /// Drops all; numbers begin again at 0.
  void clear();

 private:
  MicroBatch cut(const StepInput& batch, int64_t first_row, MessageMode mode) const;

  int64_t rows_;
  uint64_t seed_;
  std::deque<MicroBatch> under_way_;
  int first_number_ = 0;
};

}  // namespace strait
