#include "strait/data/loader.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "strait/base/error.h"

namespace strait {

Loader::Loader(std::shared_ptr<const Dataset> data, Pass pass)
    : data_(std::move(data)), pass_(std::move(pass)) {
  STRAIT_CHECK(pass_.batch_size > 0 && pass_.ahead > 0, "batch size {} and look-ahead {} must be positive",
               pass_.batch_size, pass_.ahead);
  thread_ = std::thread([this] { run(); });
}

Loader::~Loader() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

int64_t Loader::batches() const {
  const auto samples = static_cast<int64_t>(pass_.order.size());
  return samples / pass_.batch_size + (samples % pass_.batch_size != 0 ? 1 : 0);
}

std::vector<int64_t> Loader::next_ids() const {
  const auto left = std::span(pass_.order).subspan(taken_);
  const auto batch = left.first(std::min(left.size(), static_cast<size_t>(pass_.batch_size)));
  return {batch.begin(), batch.end()};
}

std::optional<Batch> Loader::next() {
  std::unique_lock lock(mutex_);
  if (ready_.empty() && !finished_) {
    const auto begin = std::chrono::steady_clock::now();
    changed_.wait(lock, [this] { return !ready_.empty() || finished_; });
    waited_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  if (ready_.empty()) {
    if (error_) std::rethrow_exception(error_);
    return std::nullopt;
  }
  std::optional<Batch> batch(std::move(ready_.front()));
  ready_.pop_front();
  taken_ += batch->ids.size();
  lock.unlock();
  changed_.notify_all();
  return batch;
}

// Batches made before a failure are still handed out: the error belongs to the batch that it stands for.
void Loader::run() {
  std::exception_ptr error;
  try {
    std::span<const int64_t> left(pass_.order);
    while (!left.empty()) {
      const auto count = std::min(left.size(), static_cast<size_t>(pass_.batch_size));
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return stopped_ || ready_.size() < static_cast<size_t>(pass_.ahead); });
        if (stopped_) return;
      }
      const auto ids = left.first(count);
      Batch batch =
          pass_.ids_only ? Batch{{}, {}, {ids.begin(), ids.end()}} : data_->batch(ids, pass_.augmentation_key);
      left = left.subspan(count);
      {
        const std::lock_guard lock(mutex_);
        ready_.push_back(std::move(batch));
      }
      changed_.notify_all();
    }
  } catch (...) {
    error = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    error_ = error;
    finished_ = true;
  }
  changed_.notify_all();
}

}  // namespace strait
