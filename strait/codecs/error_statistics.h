#pragma once

#include <ATen/core/Tensor.h>

namespace strait {

/// How far what a receiver sees is from what was sent, over one message or several. Sums in float64, element
/// after element, so that the figures do not depend on threads.
class ErrorStatistics {
 public:
  /// Of no message.
  ErrorStatistics() = default;

  /// Of one: both are float32 of the same shape, of any layout and on any device.
  ErrorStatistics(const at::Tensor& sent, const at::Tensor& received);

  /// Takes the messages of both together.
  ErrorStatistics& operator+=(const ErrorStatistics& other);

  /// |sent - received| / |sent|, 2-norms over all elements. 0 where nothing differs; infinite for zeros that
  /// arrive as something else.
  double relative_error() const;

  /// The largest magnitude of sent - received.
  double max_abs_error() const { return max_abs_error_; }

 private:
  double squared_norm_ = 0;
  double squared_error_ = 0;
  double max_abs_error_ = 0;
};

}  // namespace strait
