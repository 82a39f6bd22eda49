#include "strait/pipeline/gradient_norm.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/tensor.h>

#include <cmath>
#include <numeric>

#include "strait/base/error.h"

namespace strait {

double clip_gradients(std::span<const StageParameter> counted, std::span<const at::Tensor> scaled,
                      size_t stage_count, double limit, Group& group) {
  const at::NoGradGuard no_grad;
  constexpr double kSmall = 1e-6;  // as PyTorch has it
  std::vector<double> squares(stage_count, 0.0);
  for (const auto& [stage, parameter] : counted) {
    if (!parameter.grad().defined()) continue;
    const auto part = parameter.grad().norm().item<double>();
    squares[stage] += part * part;
  }
  at::Tensor all = at::tensor(squares, at::kDouble);
  group.all_reduce(all, "norms of the gradients");  // a stage is in one process: the rest are zeros
  const std::span stages(all.data_ptr<double>(), stage_count);
  const double norm = std::sqrt(std::accumulate(stages.begin(), stages.end(), 0.0));
  if (!std::isfinite(norm)) throw NumericError("the norm of the gradients is not finite");
  const double scale = limit / (norm + kSmall);
  if (scale >= 1) return norm;
  for (const auto& parameter : scaled) {
    if (parameter.grad().defined()) parameter.grad().mul_(scale);
  }
  return norm;
}

}  // namespace strait
