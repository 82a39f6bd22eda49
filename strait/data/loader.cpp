#include "strait/data/loader.h"

#include <algorithm>
#include <utility>

#include "strait/base/clock.h"
#include "strait/base/error.h"

namespace strait {

Loader::Loader(std::shared_ptr<const Dataset> data, Pass pass)
    : data_(std::move(data)), pass_(std::move(pass)) {
  STRAIT_CHECK(pass_.batch_size > 0 && pass_.ahead > 0, "batch size {} and look-ahead {} must be positive",
               pass_.batch_size, pass_.ahead);
  for (int64_t i = 0; i < std::min(pass_.ahead, batches()); ++i) begin_batch();
}

int64_t Loader::batches() const {
  const auto samples = static_cast<int64_t>(pass_.order.size());
  return samples / pass_.batch_size + (samples % pass_.batch_size != 0 ? 1 : 0);
}

/// The samples of the batch whose first one is at this place of the order; none behind its end.
std::span<const int64_t> Loader::batch_from(size_t first) const {
  const auto left = std::span(pass_.order).subspan(std::min(first, pass_.order.size()));
  return left.first(std::min(left.size(), static_cast<size_t>(pass_.batch_size)));
}

std::vector<int64_t> Loader::next_ids() const {
  const auto ids = batch_from(taken_);
  return {ids.begin(), ids.end()};
}

void Loader::begin_batch() {
  const auto ids = batch_from(taken_ + begun_.size() * static_cast<size_t>(pass_.batch_size));
  if (ids.empty()) return;
  worker_.post(0, [this, ids, &batch = begun_.emplace_back()] {
    batch =
        pass_.ids_only ? Batch{{}, {}, {ids.begin(), ids.end()}} : data_->batch(ids, pass_.augmentation_key);
    batch.classes = data_->classes(ids);
  });
}

// Batches made before a failure are still handed out: the error belongs to the batch that it stands for.
std::optional<Batch> Loader::next() {
  if (begun_.empty()) return std::nullopt;
  const Stopwatch watch;
  worker_.wait_for(0, taken_ / static_cast<size_t>(pass_.batch_size) + 1);
  waited_seconds_ += watch.seconds();
  std::optional<Batch> batch(std::move(begun_.front()));
  begun_.pop_front();
  taken_ += batch->ids.size();
  begin_batch();
  return batch;
}

}  // namespace strait
