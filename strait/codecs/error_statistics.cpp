#include "strait/codecs/error_statistics.h"

#include <algorithm>
#include <cmath>

#include "strait/base/error.h"

namespace strait {

ErrorStatistics::ErrorStatistics(const at::Tensor& sent, const at::Tensor& received) {
  STRAIT_CHECK(sent.scalar_type() == at::kFloat && received.scalar_type() == at::kFloat &&
                   sent.sizes() == received.sizes(),
               "error statistics: expected two float32 tensors of one shape");
  const at::Tensor x = sent.to(at::kCPU).contiguous();
  const at::Tensor y = received.to(at::kCPU).contiguous();
  const auto* values = x.data_ptr<float>();
  const auto* seen = y.data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double value = values[i];
    const double error = value - seen[i];
    squared_norm_ += value * value;
    squared_error_ += error * error;
    max_abs_error_ = std::max(max_abs_error_, std::abs(error));
  }
}

ErrorStatistics& ErrorStatistics::operator+=(const ErrorStatistics& other) {
  squared_norm_ += other.squared_norm_;
  squared_error_ += other.squared_error_;
  max_abs_error_ = std::max(max_abs_error_, other.max_abs_error_);
  return *this;
}

double ErrorStatistics::relative_error() const {
  return squared_error_ == 0 ? 0 : std::sqrt(squared_error_) / std::sqrt(squared_norm_);
}

}  // namespace strait
