#include "strait/pipeline/cut_finder.h"

#include <algorithm>
#include <optional>
#include <string>

#include "strait/base/error.h"
#include "strait/pipeline/shape_inference.h"

namespace strait {
namespace {

/// Processes with batches of other sizes would wait for messages of other sizes.
void expect_rows_alike(Group& group, int64_t rows) {
  const auto all = group.gather(std::to_string(rows));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] == all.front()) continue;
    throw InputError(
        "process {} has a batch of {} rows, process 0 one of {}; expected the same batches in every process",
        rank, all[rank], all.front());
  }
}

/// Of each tensor the shape of a sample, where there are inputs.
std::optional<std::vector<std::vector<int64_t>>> sample_shapes_of(const TensorList& inputs,
                                                                  const TensorList& extras) {
  std::vector<std::vector<int64_t>> shapes;
  for (const auto* tensors : {&inputs, &extras}) {
    for (const auto& tensor : *tensors) {
      if (!tensor.defined() || tensor.dim() == 0) return std::nullopt;
      shapes.push_back(tensor.sizes().slice(1).vec());
    }
    shapes.push_back({-1});  // between the lists
  }
  return inputs.empty() ? std::nullopt : std::optional(std::move(shapes));
}

}  // namespace

std::vector<bool> CutFinder::trained_here() const {
  std::vector<bool> trained;
  for (size_t stage = 0; stage < stages_.size(); ++stage) {
    if (!runs_(static_cast<int>(stage))) continue;
    for (const auto& parameter : stages_[stage].parameters()) trained.push_back(parameter.requires_grad());
  }
  return trained;
}

const Cuts& CutFinder::cuts_of(const TensorList& inputs, const TensorList& extras, int64_t rows) {
  if (group_.size() == 1) {
    std::vector<bool> trained = trained_here();
    if (trained != trained_) forget();
    trained_ = std::move(trained);
  }
  const auto given = sample_shapes_of(inputs, extras);
  const SampleShapes shapes = given.value_or(shapes_);
  if (is_first_) {
    expect_rows_alike(group_, rows);
    const auto all = group_.gather(given ? "inputs" : "");
    inputs_everywhere_ = std::ranges::count(all, "inputs") == group_.size();
  } else if (!inputs_everywhere_ && !known_.empty() && shapes != shapes_) {
    throw InputError(
        "a batch with inputs of other shapes than the one before: expected inputs in every process from the "
        "first batch on, or one shape");
  }
  auto known = known_.find(shapes);
  if (known == known_.end()) {
    known = known_.emplace(shapes, infer_cuts(stages_, inputs, extras, runs_, device_, group_)).first;
  }
  shapes_ = shapes;
  is_first_ = false;
  return known->second;
}

}  // namespace strait
