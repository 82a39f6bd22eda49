#include "strait/train/exchanged_values.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>

namespace strait {

void ExchangedValues::swap() const {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const at::Tensor values = tensors_[i].variable_data();  // the same memory, with a version count of its own
    const at::Tensor before = values.clone();
    values.copy_(others_[i]);
    others_[i].copy_(before);
  }
}

}  // namespace strait
