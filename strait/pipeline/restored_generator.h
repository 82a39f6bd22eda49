#pragma once

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <mutex>

namespace strait {

/// Gives LibTorch's generator of a device at the end of its lifetime the state that it had at its beginning,
/// for passes that are no part of training and whose layers may draw random numbers.
class RestoredGenerator {
 public:
  /// Reads the state; the device is one that has a generator.
  explicit RestoredGenerator(at::Device device) : generator_(at::globalContext().defaultGenerator(device)) {
    const std::scoped_lock lock(generator_.mutex());
    before_ = generator_.get_state();
  }

  /// Puts the state back.
  ~RestoredGenerator() {
    try {
      const std::scoped_lock lock(generator_.mutex());
      generator_.set_state(before_);
    } catch (const c10::Error&) {  // of a device that has failed, for which an exception is under way
    }
  }
  RestoredGenerator(const RestoredGenerator&) = delete;
  RestoredGenerator& operator=(const RestoredGenerator&) = delete;

 private:
  at::Generator generator_;
  at::Tensor before_;
};

}  // namespace strait
