#include "strait/pipeline/micro_batch_queue.h"

#include <algorithm>

#include "strait/base/error.h"
#include "strait/base/random.h"
#include "strait/transport/transport.h"

namespace strait {
namespace {

constexpr int kNumbers = Tag::kMicroBatches;

}  // namespace

TensorList MicroBatch::rows_of(const TensorList& batch) const {
  TensorList own;
  for (const auto& tensor : batch) own.push_back(tensor.narrow(0, first_row, rows));
  return own;
}

MicroBatch MicroBatchQueue::cut(const StepInput& batch, int64_t first_row, MessageMode mode) const {
  MicroBatch part;
  part.batch_inputs = batch.inputs;
  part.batch_targets = batch.targets;
  part.batch_extras = batch.extras;
  part.first_row = first_row;
  part.rows = std::min(rows_, batch.rows - first_row);
  const auto own = [&](const std::vector<int64_t>& of_batch) {
    if (of_batch.empty()) return std::vector<int64_t>();
    const auto begin = of_batch.begin() + first_row;
    return std::vector<int64_t>(begin, begin + part.rows);
  };
  part.ids = own(batch.ids);
  part.classes = own(batch.classes);
  // Its rows count from the batch's first, so a part of a larger batch has draws of its own through the seed.
  part.context.seed = batch.first_row == 0 ? seed_ : make_key(seed_, batch.first_row);
  part.context.step = batch.step;
  part.context.micro_batch = static_cast<uint32_t>(number(count()));
  part.context.first_row = static_cast<size_t>(first_row);
  part.context.batch = batch.mark;
  part.mode = mode;
  part.draws = {seed_, batch.step, static_cast<size_t>(batch.first_row + first_row)};
  const int64_t all_rows = batch.all_rows > 0 ? batch.all_rows : batch.rows;
  part.weight = batch.weigh ? batch.weigh(first_row, part.rows)
                            : static_cast<double>(part.rows) / static_cast<double>(all_rows);
  return part;
}

int MicroBatchQueue::add(const StepInput& batch, MessageMode mode) {
  STRAIT_CHECK(batch.rows > 0, "an empty batch");
  const int before = count();
  for (int64_t row = 0; row < batch.rows; row += rows_) {
    MicroBatch& part = under_way_.emplace_back(cut(batch, row, mode));
    part.context.ids = part.ids;
    part.context.classes = part.classes;
  }
  STRAIT_CHECK(count() <= kNumbers, "{} micro-batches under way, at most {} have a number", count(), kNumbers);
  return count() - before;
}

int MicroBatchQueue::add_steps(const StepInput& batch, MessageMode mode) {
  const int added = add(batch, mode);
  for (int i = 0; i < added; ++i) {
    MicroBatch& part = under_way_[under_way_.size() - static_cast<size_t>(added - i)];
    part.context.step = batch.step + static_cast<uint64_t>(i);
    part.draws = {seed_, part.context.step, 0};
    part.weight = 1;
  }
  return added;
}

int MicroBatchQueue::number(int position) const { return (first_number_ + position) % kNumbers; }

const MicroBatch& MicroBatchQueue::at(int number) const {
  const int position = (number - first_number_ + kNumbers) % kNumbers;
  STRAIT_CHECK(position < count(), "micro-batch {} is not under way", number);
  return under_way_[static_cast<size_t>(position)];
}

void MicroBatchQueue::keep(int count) {
  while (this->count() > count) {
    under_way_.pop_front();
    first_number_ = number(1);
  }
}

void MicroBatchQueue::clear() {
  under_way_.clear();
  first_number_ = 0;
}

}  // namespace strait
