#include "strait/train/loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/zeros.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/custom_function.h>

#include "strait/base/error.h"

namespace strait {
namespace {

constexpr int64_t kRowsAtOnce = 128;  // bounds what is kept beside the logits

/// Calls visit(rows, following, first) with [R, V] rows of the logits, which share their memory, the [R] tokens
/// to predict from them, and the place of the first among all predictions.
template <class Visit>
void visit_predictions(const at::Tensor& logits, const at::Tensor& tokens, Visit visit) {
  const int64_t each = tokens.size(1) - 1;
  for (int64_t block = 0; block < tokens.size(0); ++block) {
    for (int64_t begin = 0; begin < each; begin += kRowsAtOnce) {
      const int64_t rows = std::min(kRowsAtOnce, each - begin);
      visit(logits[block].narrow(0, begin, rows), tokens[block].narrow(0, begin + 1, rows),
            block * each + begin);
    }
  }
}

/// Saves nothing but its inputs and, of every prediction, the logarithm of the sum over the vocabulary.
class LanguageModelLoss : public torch::autograd::Function<LanguageModelLoss> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& logits,
                            const at::Tensor& tokens, int64_t* correct) {
    const int64_t count = tokens.size(0) * (tokens.size(1) - 1);
    const at::Tensor norms = at::empty({count}, logits.options().dtype(at::kFloat));
    const at::Tensor losses = at::empty_like(norms);
    const at::Tensor right = at::zeros({}, tokens.options());
    visit_predictions(logits, tokens, [&](const at::Tensor& part, const at::Tensor& following, int64_t first) {
      const at::Tensor rows = part.to(at::kFloat);
      const at::Tensor norm = norms.narrow(0, first, rows.size(0));
      norm.copy_(at::logsumexp(rows, 1));
      losses.narrow(0, first, rows.size(0)).copy_(norm - rows.gather(1, following.unsqueeze(1)).squeeze(1));
      right.add_(rows.argmax(1).eq(following).sum());
    });
    *correct = right.item<int64_t>();
    context->save_for_backward({logits, tokens, norms});
    return losses.mean();
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor logits = saved[0].detach();
    const at::Tensor& tokens = saved[1];
    const at::Tensor& norms = saved[2];
    const at::Tensor weight = gradients[0] / norms.numel();
    visit_predictions(logits, tokens, [&](at::Tensor part, const at::Tensor& following, int64_t first) {
      // The logits' own memory where they are float32.
      at::Tensor rows = part.to(at::kFloat);
      rows.sub_(norms.narrow(0, first, rows.size(0)).unsqueeze(1)).exp_();
      rows.scatter_add_(1, following.unsqueeze(1), at::full({rows.size(0), 1}, -1.0, rows.options()));
      rows.mul_(weight);
      if (part.scalar_type() != at::kFloat) part.copy_(rows);
    });
    logits.select(1, tokens.size(1) - 1).zero_();  // predicts nothing
    return {logits, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

Loss classification_loss(const at::Tensor& output, const at::Tensor& targets) {
  const at::Tensor scores = output.scalar_type() == at::kBFloat16 ? output.to(at::kFloat) : output;
  return {at::cross_entropy_loss(scores, targets), scores.detach().argmax(1).eq(targets).sum().item<int64_t>(),
          targets.size(0)};
}

Loss regression_loss(const at::Tensor& output, const at::Tensor& targets) {
  if (output.sizes() != targets.sizes()) {
    throw InputError("targets of shape [{}]: expected the shape of the network's output, [{}]",
                     fmt::join(targets.sizes(), ", "), fmt::join(output.sizes(), ", "));
  }
  return {
      .mean = at::mse_loss(output.to(targets.scalar_type()), targets), .correct = 0, .count = targets.numel()};
}

Loss language_model_loss(const at::Tensor& logits, const at::Tensor& tokens) {
  STRAIT_CHECK(logits.dim() == 3 && tokens.dim() == 2 && logits.size(0) == tokens.size(0) &&
                   logits.size(1) == tokens.size(1) && tokens.size(1) > 1,
               "logits of {} dimensions for tokens of {}", logits.dim(), tokens.dim());
  Loss loss;
  loss.count = tokens.size(0) * (tokens.size(1) - 1);
  loss.mean = LanguageModelLoss::apply(logits, tokens, &loss.correct);
  return loss;
}

}  // namespace strait
