#include "strait/models/recompute.h"

#include <torch/torch.h>

#include <optional>
#include <utility>

#include "strait/base/rng_scope.h"
#include "strait/models/bfloat16.h"

namespace strait {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Rerun : torch::CustomClassHolder {
  std::function<at::Tensor(const at::Tensor&)> function;
  RngKey draws;
  bool bfloat16 = false;

  at::Tensor run(const at::Tensor& x) const {
    const RngScope scope(draws);
    std::optional<Bfloat16Scope> precision;
    if (bfloat16) precision.emplace(x.device().type());
    return function(x);
  }
};

class Recompute : public torch::autograd::Function<Recompute> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const c10::intrusive_ptr<Rerun>& rerun) {
    context->save_for_backward({x});
    context->saved_data["rerun"] = c10::IValue::make_capsule(rerun);
    return rerun->function(x);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto rerun = c10::static_intrusive_pointer_cast<Rerun>(context->saved_data["rerun"].toCapsule());
    const at::Tensor x = context->get_saved_variables()[0].detach().requires_grad_(true);
    const at::AutoGradMode with_graph(true);
    torch::autograd::backward({rerun->run(x)}, {gradients[0]});
    return {x.grad(), at::Tensor()};
  }
};

}  // namespace

at::Tensor recomputed(const at::Tensor& x, std::function<at::Tensor(const at::Tensor&)> function) {
  if (!at::GradMode::is_enabled() || !x.requires_grad()) return function(x);
  auto rerun = c10::make_intrusive<Rerun>();
  rerun->function = std::move(function);
  rerun->draws = current_rng_key();
  rerun->bfloat16 = in_bfloat16(x.device().type());
  return Recompute::apply(x, rerun);
}

}  // namespace strait
