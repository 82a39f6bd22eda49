#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace strait {

/// Exchanges the values of tensors with others, of the same shapes, for its lifetime; both must outlive it.
/// Autograd does not count it as a change: graphs that have saved the tensors read, in a backward pass, the
/// values that are in them then.
class ExchangedValues {
 public:
  /// The first of `tensors` has the values of the first of `others`, and so on.
  ExchangedValues(const std::vector<at::Tensor>& tensors, const std::vector<at::Tensor>& others)
      : tensors_(tensors), others_(others) {
    swap();
  }
  ~ExchangedValues() { swap(); }
  ExchangedValues(const ExchangedValues&) = delete;
  ExchangedValues& operator=(const ExchangedValues&) = delete;

 private:
  void swap() const;

  const std::vector<at::Tensor>& tensors_;
  const std::vector<at::Tensor>& others_;
};

}  // namespace strait
