#include "strait/train/gradient_trial.h"

#include <ATen/core/ivalue.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "strait/base/json.h"

namespace strait {
namespace {

using nlohmann::json;

using Halves = GradientProducts::Halves;

constexpr double kLeastInCommon = 0.15;  // of what the gradients of the halves are

double product(const at::Tensor& x, const at::Tensor& y) { return (x * y).sum(at::kDouble).item<double>(); }

void add(Halves& sum, const Halves& other, double share = 1) {
  sum.between += share * other.between;
  sum.within += share * other.within;
}

void add(GradientProducts& sum, const GradientProducts& other, double share = 1) {
  add(sum.both, other.both, share);
  add(sum.with, other.with, share);
  add(sum.without, other.without, share);
}

/// Of gradients x and y, each of the halves a and b.
Halves products_of(const at::Tensor& x_a, const at::Tensor& x_b, const at::Tensor& y_a, const at::Tensor& y_b) {
  return {(product(x_a, y_b) + product(x_b, y_a)) / 2, (product(x_a, y_a) + product(x_b, y_b)) / 2};
}

json to_json(const GradientProducts& products) {
  json list = json::array();
  for (const Halves& each : {products.both, products.with, products.without})
    list.push_back({each.between, each.within});
  return list;
}

GradientProducts products_in(const json& list) {
  const auto halves = [&](size_t place) -> Halves {
    const auto number = [](const json& value) {  // JSON has none that is not finite
      return value.is_null() ? std::nan("") : value.get<double>();
    };
    return {number(list.at(place).at(0)), number(list.at(place).at(1))};
  };
  return {halves(0), halves(1), halves(2)};
}

bool is_finite(const GradientProducts& products) {
  double sum = 0;
  for (const Halves& each : {products.both, products.with, products.without})
    sum += std::abs(each.between) + std::abs(each.within);
  return std::isfinite(sum);
}

/// Over the square of its gradient without codecs.
GradientProducts of_stage(const GradientProducts& products) {
  GradientProducts scaled;
  add(scaled, products, 1 / products.without.within);
  if (is_finite(scaled)) return scaled;
  return {.both = {}, .with = {1, 1}, .without = {1, 1}};
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

SampleHalves halves_of(const std::vector<StepInput>& batches) {
  SampleHalves halves;
  if (batches.size() == 1) {
    const StepInput& batch = batches.front();
    const int64_t rows = std::max<int64_t>(batch.rows / 2, 1);
    halves[0].push_back(rows_of(batch, 0, rows));
    halves[1].push_back(rows_of(batch, batch.rows - rows, rows));
  }
  for (size_t i = 0; i + 1 < batches.size(); i += 2) {
    for (size_t half = 0; half < halves.size(); ++half) {
      const StepInput& batch = batches[i + half];
      halves[half].push_back(rows_of(batch, 0, batch.rows));
    }
  }
  return halves;
}

GradientTrial::Gradients GradientTrial::gradients() const {
  Gradients gradients;
  for (size_t half = 0; half < gradients.size(); ++half) {
    for (const auto& batch : samples_[half]) pass_.run(gradients[half], [&] { executor_.trial(batch); });
  }
  return gradients;
}

void GradientTrial::set_reference() {
  reference_ = gradients();
  const auto& [a, b] = reference_;
  of_reference_.clear();
  for (size_t i = 0; i < a.size(); ++i) of_reference_.push_back(products_of(a[i], b[i], a[i], b[i]));
}

// A stage is in one process of each replica, so that its sums have the same bits however many there are.
GradientProducts GradientTrial::products() {
  const auto [a, b] = gradients();
  const auto& [first_a, first_b] = reference_;
  std::map<int, GradientProducts> mine;
  for (size_t i = 0; i < a.size(); ++i) {
    GradientProducts& sum = mine[stages_[i]];
    add(sum.both, products_of(a[i], b[i], first_a[i], first_b[i]));
    add(sum.with, products_of(a[i], b[i], a[i], b[i]));
    add(sum.without, of_reference_[i]);
  }
  json told = json::array();
  for (const auto& [stage, products] : mine) told.push_back({stage, to_json(products)});
  std::map<int, GradientProducts> all;
  for (const auto& text : group_.gather(told.dump())) {
    for (const auto& each : parse_json<WireError>(text, "the products of gradients"))
      add(all[each.at(0)], products_in(each.at(1)));
  }
  GradientProducts sum;
  for (const auto& [stage, products] : all) {
    if (products.without.within != 0) add(sum, of_stage(products));
  }
  return sum;
}

GradientProducts sum_of(const GradientProducts& now, const GradientProducts& earlier, double kept) {
  GradientProducts sum = now;
  add(sum, earlier, kept);
  return sum;
}

double cosine_of(const GradientProducts& products) {
  const auto& [both, with, without] = products;
  if (without.within == 0) return 1;
  const double share = std::max(0.0, kLeastInCommon - without.between / without.within);
  const auto common = [&](const Halves& halves) { return halves.between + share * halves.within; };
  if (common(with) <= 0) return 0;
  return std::clamp(common(both) / std::sqrt(common(with) * common(without)), 0.0, 1.0);
}

}  // namespace strait
