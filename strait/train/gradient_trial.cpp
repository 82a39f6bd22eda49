#include "strait/train/gradient_trial.h"

#include <ATen/core/ivalue.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace strait {
namespace {

using nlohmann::json;

constexpr double kLeastInCommon = 0.3;  // of what the gradients of the halves are

double product(const at::Tensor& x, const at::Tensor& y) { return (x * y).sum(at::kDouble).item<double>(); }

/// Products of gradients of the halves a and b.
struct Products {
  double between = 0;  ///< one from each half
  double within = 0;   ///< both from the same

  void add(const at::Tensor& x_a, const at::Tensor& x_b, const at::Tensor& y_a, const at::Tensor& y_b) {
    between += (product(x_a, y_b) + product(x_b, y_a)) / 2;
    within += (product(x_a, y_a) + product(x_b, y_b)) / 2;
  }
  double with(double share_within) const { return between + share_within * within; }
};

/// Of the parameters of a stage.
struct StageProducts {
  Products both;   ///< of a gradient and the one to compare with
  Products own;    ///< of the gradient with itself
  Products first;  ///< of the one to compare with, with itself

  std::array<Products*, 3> all() { return {&both, &own, &first}; }

  double cosine() const {
    const double share = std::max(0.0, kLeastInCommon - first.between / first.within);
    const double cosine = both.with(share) / std::sqrt(own.with(share) * first.with(share));
    return own.with(share) > 0 && std::isfinite(cosine) ? std::clamp(cosine, 0.0, 1.0) : 0;
  }
};

json to_json(StageProducts& products) {
  json list = json::array();
  for (const Products* each : products.all()) list.push_back({each->between, each->within});
  return list;
}

void add(const json& list, StageProducts& sum) {
  const auto number = [](const json& value) {  // JSON has none that is not finite
    return value.is_null() ? std::nan("") : value.get<double>();
  };
  for (size_t i = 0; Products * each : sum.all()) {
    each->between += number(list.at(i).at(0));
    each->within += number(list.at(i++).at(1));
  }
}

}  // namespace

StepInput rows_of(const StepInput& batch, int64_t first, int64_t rows) {
  StepInput part{.inputs = {}, .targets = batch.targets, .step = batch.step, .rows = rows};
  for (const auto& input : batch.inputs)
    part.inputs.push_back(input.defined() ? input.narrow(0, first, rows) : input);
  if (part.targets.defined()) part.targets = part.targets.narrow(0, first, rows);
  part.first_row = batch.first_row + first;
  return part;
}

GradientTrial::Halves GradientTrial::gradients() const {
  const int64_t rows = std::max<int64_t>(batch_.rows / 2, 1);
  Halves halves;
  for (const bool second : {false, true}) {
    const StepInput half = rows_of(batch_, second ? batch_.rows - rows : 0, rows);
    pass_.run(halves[second ? 1 : 0], [&] { executor_.trial(half); });
  }
  return halves;
}

void GradientTrial::set_reference() { reference_ = gradients(); }

// A stage is in one process of each replica, so that its sums have the same bits however many there are.
double GradientTrial::cosine() {
  const auto [a, b] = gradients();
  const auto& [first_a, first_b] = reference_;
  std::map<int, StageProducts> mine;
  for (size_t i = 0; i < a.size(); ++i) {
    StageProducts& products = mine[stages_[i]];
    products.both.add(a[i], b[i], first_a[i], first_b[i]);
    products.own.add(a[i], b[i], a[i], b[i]);
    products.first.add(first_a[i], first_b[i], first_a[i], first_b[i]);
  }
  json told = json::array();
  for (auto& [stage, products] : mine) told.push_back({stage, to_json(products)});
  std::map<int, StageProducts> all;
  for (const auto& text : group_.gather(told.dump())) {
    for (const auto& of_stage : json::parse(text)) add(of_stage.at(1), all[of_stage.at(0)]);
  }
  double sum = 0;
  int count = 0;
  for (const auto& [stage, products] : all) {
    if (products.first.within == 0) continue;
    sum += products.cosine();
    ++count;
  }
  return count == 0 ? 1 : sum / count;
}

}  // namespace strait
