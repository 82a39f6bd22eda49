#include "strait/pipeline/cut.h"

#include <ATen/core/grad_mode.h>

#include <utility>

#include "strait/base/error.h"
#include "strait/pipeline/half_range.h"

namespace strait {
namespace {

/// What a cut carries, as the transport takes it.
at::ScalarType crossing_type(const CutTensor& tensor) { return tensor.is_integer() ? at::kLong : at::kFloat; }

/// The next stages would send no gradient for it.
void check_gradient(const at::Tensor& output, int stage, size_t i, const CutTensor& cut) {
  if (cut.has_gradient || !at::GradMode::is_enabled() || !output.requires_grad()) return;
  throw InputError(
      "stage {} gives tensor {} that requires a gradient, but there was nothing to train for it at the first "
      "batch; where parameters were unfrozen since, expected a call of parameters_changed() in every process",
      stage, i);
}

}  // namespace

StageForward between_cuts(StageForward forward, int stage, const std::vector<CutTensor>* above,
                          const std::vector<CutTensor>* below) {
  if (above != nullptr) {
    forward = [forward = std::move(forward), above, stage](const TensorList& received) {
      TensorList x;
      for (size_t i = 0; i < received.size(); ++i) {
        const bool has_crossed = i < above->size();  // else it is what every stage gets
        x.push_back(has_crossed ? received[i].to((*above)[i].type) : received[i]);
        if (has_crossed) expect_in_range(x.back(), fmt::format("tensor {} that stage {} gets", i, stage));
      }
      return forward(x);
    };
  }
  if (below == nullptr) return forward;
  return [forward = std::move(forward), below, stage](const TensorList& x) {
    TensorList outputs = forward(x);
    if (outputs.size() != below->size()) {
      throw InputError("stage {} gives {} tensors, expected {}, as of the first batch in evaluation mode",
                       stage, outputs.size(), below->size());
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const CutTensor& cut = (*below)[i];
      const at::ScalarType found = outputs[i].scalar_type();
      const bool is_half = found == at::kHalf || found == at::kBFloat16;
      if (found != cut.type && !(is_half && cut.type == at::kFloat)) {
        throw InputError("stage {} gives {} as tensor {}, expected {}, as of the first batch", stage,
                         c10::toString(found), i, c10::toString(cut.type));
      }
      check_gradient(outputs[i], stage, i, cut);
      if (is_half && outputs[i].requires_grad()) {
        outputs[i].register_hook([stage, i](const at::Tensor& gradient) {
          expect_in_range(gradient, fmt::format("the gradient of tensor {} that stage {} gives", i, stage));
        });
      }
      outputs[i] = outputs[i].to(crossing_type(cut));
    }
    return outputs;
  };
}

}  // namespace strait
