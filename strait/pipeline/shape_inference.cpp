#include "strait/pipeline/shape_inference.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>

#include "strait/base/json.h"
#include "strait/base/text.h"
#include "strait/pipeline/restored_generator.h"

namespace strait {
namespace {

/// A module in evaluation mode, as long as this lives.
class EvaluationScope {
 public:
  explicit EvaluationScope(const StageModule& stage) : stage_(stage), before_(stage.train(false)) {}
  ~EvaluationScope() { stage_.train(before_); }
  EvaluationScope(const EvaluationScope&) = delete;
  EvaluationScope& operator=(const EvaluationScope&) = delete;

 private:
  const StageModule& stage_;
  bool before_;
};

std::string shapes_text(const TensorList& tensors) {
  std::vector<std::string> shapes;
  for (const auto& tensor : tensors) shapes.push_back(shape_text(tensor.sizes()));
  return list_of(shapes);
}

/// `rows` gives one row of what the stage gets.
TensorList try_stage(int number, const StageModule& stage, const std::function<TensorList()>& rows,
                     at::Device device) {
  const c10::InferenceMode no_inference(false);
  const at::AutoGradMode with_gradients(true);
  const RestoredGenerator host(at::kCPU);
  const RestoredGenerator own(device);
  const EvaluationScope evaluation(stage);
  TensorList x;
  const auto refusal = [&](std::string_view why) {
    return InputError("stage {} cannot run on {}, {}: {}", number,
                      number == 0 ? "a row of the inputs" : fmt::format("what stage {} gives", number - 1),
                      shapes_text(x), first_line(why));
  };
  try {
    x = rows();
    return stage.forward()(x);
  } catch (const c10::Error& error) {
    std::throw_with_nested(refusal(error.what_without_backtrace()));
  } catch (const std::exception& error) {
    std::throw_with_nested(refusal(error.what()));
  }
}

bool may_cross(at::ScalarType type) {
  return type == at::kFloat || type == at::kHalf || type == at::kBFloat16 || at::isIntegralType(type, true);
}

/// Whether the stage trains something, or something before it does.
bool is_trained(const StageModule& stage, const std::vector<CutTensor>& input) {
  return std::ranges::any_of(stage.parameters(), [](const auto& each) { return each.requires_grad(); }) ||
         std::ranges::any_of(input, [](const auto& each) { return each.has_gradient; });
}

nlohmann::json what_crosses(int number, const TensorList& outputs, bool trained) {
  const bool none = std::ranges::none_of(outputs, [](const auto& output) { return output.requires_grad(); });
  auto cut = nlohmann::json::array();
  for (const auto& output : outputs) {
    if (output.defined() && may_cross(output.scalar_type()) && output.dim() > 0 && output.size(0) == 1) {
      const bool has_gradient = output.is_floating_point() && (none ? trained : output.requires_grad());
      cut.push_back({output.sizes().slice(1).vec(), static_cast<int>(output.scalar_type()), has_gradient});
      continue;
    }
    throw InputError(
        "stage {} gives {} for one row, expected float32, float16, bfloat16, integers or bool of shape [1, "
        "...]",
        number,
        output.defined() ? fmt::format("{} {}", c10::toString(output.scalar_type()), shape_text(output.sizes()))
                         : "an undefined tensor");
  }
  if (cut.empty()) throw InputError("stage {} gives no tensor", number);
  return cut;
}

std::vector<CutTensor> cut_of(const nlohmann::json& crossing) {
  std::vector<CutTensor> cut;
  for (const auto& tensor : crossing) {
    cut.push_back({tensor.at(0).get<std::vector<int64_t>>(),
                   static_cast<at::ScalarType>(tensor.at(1).get<int>()), tensor.at(2).get<bool>()});
  }
  return cut;
}

TensorList first_rows(const TensorList& batch) {
  TensorList rows;
  for (const auto& tensor : batch) rows.push_back(tensor.narrow(0, 0, 1).clone());
  return rows;
}

/// No leaves, so that a stage may change them in place.
TensorList zeros_of(const std::vector<CutTensor>& cut, at::Device device) {
  TensorList zeros;
  for (auto [shape, type, has_gradient] : cut) {
    shape.insert(shape.begin(), 1);
    zeros.push_back(
        at::zeros(shape, at::TensorOptions(type).device(device)).requires_grad_(has_gradient).clone());
  }
  return zeros;
}

}  // namespace

Cuts infer_cuts(const std::vector<StageModule>& stages, const TensorList& inputs, const TensorList& extras,
                const std::function<bool(int stage)>& runs, at::Device device, Group& group) {
  Cuts cuts;
  const auto rows = [&] {
    TensorList x = cuts.empty() ? first_rows(inputs) : zeros_of(cuts.back(), device);
    for (const auto& extra : first_rows(extras)) x.push_back(extra);
    return x;
  };
  for (int stage = 0; stage < static_cast<int>(stages.size()); ++stage) {
    const bool is_last = stage + 1 == static_cast<int>(stages.size());
    std::string mine;
    run_collectively(group, [&] {
      if (!runs(stage)) return;
      const StageModule& module = stages[static_cast<size_t>(stage)];
      const TensorList outputs = try_stage(stage, module, rows, device);
      if (is_last) return;
      mine = what_crosses(stage, outputs,
                          is_trained(module, cuts.empty() ? std::vector<CutTensor>() : cuts.back()))
                 .dump();
    });
    if (is_last) break;
    for (const auto& text : group.gather(mine)) {
      if (!text.empty()) cuts.push_back(cut_of(parse_json<WireError>(text, "a stage's shapes")));
    }
    STRAIT_CHECK(cuts.size() == static_cast<size_t>(stage) + 1, "stage {} is in several processes or none",
                 stage);
  }
  return cuts;
}

}  // namespace strait
