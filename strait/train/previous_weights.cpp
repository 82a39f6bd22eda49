#include "strait/train/previous_weights.h"

#include <ATen/core/ivalue.h>

#include "strait/base/error.h"
#include "strait/train/exchanged_values.h"

namespace strait {

PreviousWeights::PreviousWeights(const Model& own) : side_pass_(own) { drop(); }

void PreviousWeights::run(const std::function<void()>& pass) {
  for (size_t i = 0; i < weights_.size(); ++i)
    STRAIT_CHECK(weights_[i].defined(), "no weights before of {}", side_pass_.names()[i]);
  const ExchangedValues values(side_pass_.parameters(), weights_);
  side_pass_.run(gradients_, pass);
}

void PreviousWeights::keep() {
  const auto& parameters = side_pass_.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor now = parameters[i].detach();
    if (weights_[i].defined() && weights_[i].device() == now.device()) {
      weights_[i].copy_(now);
    } else {
      weights_[i] = now.clone();
    }
  }
}

void PreviousWeights::visit_state(StateVisitor& visitor) {
  for (size_t i = 0; i < weights_.size(); ++i) visitor.tensor(side_pass_.names()[i], weights_[i]);
}

}  // namespace strait
