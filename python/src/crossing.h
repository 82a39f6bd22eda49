#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "strait/boundary/channel.h"

namespace strait::python {

/// Numbers for the micro-batches whose gradient is to come: the lowest that are free. They are no part of any
/// draw; the indices that gradients reuse are kept under them.
class MicroBatches {
 public:
  /// A number that nobody has.
  uint32_t take() {
    const std::scoped_lock lock(mutex_);
    uint32_t number = 0;
    while (!taken_.insert(number).second) ++number;
    return number;
  }

  /// Anybody may have it.
  void give_back(uint32_t number) {
    const std::scoped_lock lock(mutex_);
    taken_.erase(number);
  }

 private:
  std::mutex mutex_;
  std::set<uint32_t> taken_;
};

/// A forward message of training whose gradient is to come. Autograd's graph holds it, so that it goes with a
/// graph that is never run backward.
class Crossing {
 public:
  /// The ids and classes of the context are these of the samples.
  Crossing(std::shared_ptr<MicroBatches> numbers, MessageContext of, MessageMode how,
           std::vector<int64_t> sample_ids, std::vector<int64_t> sample_classes)
      : context(of),
        mode(how),
        numbers_(std::move(numbers)),
        ids_(std::move(sample_ids)),
        classes_(std::move(sample_classes)) {
    context.micro_batch = numbers_->take();
    context.ids = ids_;
    context.classes = classes_;
  }
  ~Crossing() { finish(); }
  Crossing(const Crossing&) = delete;
  Crossing& operator=(const Crossing&) = delete;

  /// Whether the gradient has crossed.
  bool is_finished() const { return numbers_ == nullptr; }

  /// Whether it has its number of these.
  bool is_among(const std::shared_ptr<MicroBatches>& numbers) const { return numbers_ == numbers; }

  /// The gradient has crossed, or never will.
  void finish() {
    if (numbers_) std::exchange(numbers_, nullptr)->give_back(context.micro_batch);
  }

  MessageContext context;  ///< of both messages
  MessageMode mode;        ///< likewise

 private:
  std::shared_ptr<MicroBatches> numbers_;
  std::vector<int64_t> ids_;
  std::vector<int64_t> classes_;
};

}  // namespace strait::python
