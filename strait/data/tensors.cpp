#include "strait/data/tensors.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/isfinite.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/base/host.h"
#include "strait/base/text.h"
#include "strait/base/units.h"
#include "strait/data/kinds.h"
#include "strait/data/limits.h"
#include "strait/formats/safetensors.h"

namespace strait {
namespace {

namespace fs = std::filesystem;

fs::path tensor_file(const DataOptions& options, std::string_view key) {
  fs::path path = options.settings.text(key);
  if (path.empty()) throw InputError("data.{} is not set, expected the name of a safetensors file", key);
  if (is_there(path)) return path;
  auto below_root = fs::path(options.root) / path;
  if (!options.root.empty() && is_there(below_root)) return below_root;
  throw InputError("data.{}: no file {}, here or below data.root, which is \"{}\"", key, path.string(),
                   options.root);
}

/// Labels are below it.
constexpr int64_t kMostClasses = int64_t{1} << 31;

/// A form that a tensor of the file may have.
struct Expected {
  std::vector<at::ScalarType> types;
  std::string shape;  ///< for people
  size_t least_dimensions;
  size_t most_dimensions = std::numeric_limits<size_t>::max();
};

std::vector<at::ScalarType> float_types() { return {at::kFloat, at::kHalf, at::kBFloat16}; }

/// The file's entry of that name, which has one of these forms, without an empty dimension.
const TensorEntry& entry_of(const SafetensorsReader& reader, const char* name,
                            const std::vector<Expected>& forms) {
  const TensorEntry* entry = reader.find(name);
  if (entry == nullptr)
    throw InputError("{}: has no tensor \"{}\", expected \"inputs\" and \"targets\"", reader.name(), name);
  const bool has_numbers = std::ranges::find(entry->shape, 0) == entry->shape.end();
  std::vector<std::string> texts;
  for (const auto& [types, shape, least, most] : forms) {
    const bool fits = entry->shape.size() >= least && entry->shape.size() <= most;
    if (std::ranges::find(types, entry->type) != types.end() && fits && has_numbers) return *entry;
    std::vector<std::string> names;
    names.reserve(types.size());
    for (const auto type : types) names.emplace_back(safetensors_type_name(type));
    texts.push_back(fmt::format("{} of shape {}", either_of(names), shape));
  }
  throw InputError("{}: tensor \"{}\" is {} of shape [{}], expected {} without a 0", reader.name(), name,
                   safetensors_type_name(entry->type), fmt::join(entry->shape, ", "),
                   fmt::join(texts, ", or "));
}

/// A file whose tensors have the right types and shapes.
class TargetedTensors {
 public:
  explicit TargetedTensors(const fs::path& path)
      : reader_(path),
        inputs_(entry_of(reader_, "inputs", {{float_types(), "[N, ...]", 2}})),
        targets_(entry_of(reader_, "targets",
                          {{{at::kLong, at::kInt}, "[N]", 1, 1}, {float_types(), "[N] or [N, ...]", 1}})) {
    if (inputs_.shape[0] == targets_.shape[0]) return;
    throw InputError("{}: has {} inputs and {} targets, expected as many", reader_.name(), inputs_.shape[0],
                     targets_.shape[0]);
  }

  int64_t size() const { return targets_.shape[0]; }
  std::vector<int64_t> sample_shape() const { return {inputs_.shape.begin() + 1, inputs_.shape.end()}; }
  const std::string& name() const { return reader_.name(); }
  bool has_labels() const { return targets_.type == at::kLong || targets_.type == at::kInt; }

  /// How many numbers a target that is no label has.
  int64_t target_width() const {
    return std::accumulate(targets_.shape.begin() + 1, targets_.shape.end(), int64_t{1}, std::multiplies<>());
  }

  at::Tensor inputs() const { return floats(inputs_, "inputs"); }

  /// Labels from 0 to classes - 1.
  at::Tensor labels(int64_t classes) const {
    at::Tensor labels;
    reader_.read(targets_, labels);
    labels = labels.to(at::kLong);
    const auto lowest = labels.min().item<int64_t>();
    const auto highest = labels.max().item<int64_t>();
    if (lowest < 0 || highest >= classes) {
      throw InputError("{}: tensor \"targets\" has the label {}, expected 0 to {}", reader_.name(),
                       lowest < 0 ? lowest : highest, classes - 1);
    }
    return labels;
  }

  /// Targets that are no labels, each as a vector of so many numbers.
  at::Tensor numbers(int64_t width) const { return floats(targets_, "targets").view({size(), width}); }

 private:
  at::Tensor floats(const TensorEntry& entry, const char* name) const {
    const auto numbers =
        std::accumulate(entry.shape.begin(), entry.shape.end(), uint64_t{1}, std::multiplies<>());
    const uint64_t bytes = numbers * sizeof(float);
    if (bytes > free_memory()) {
      throw InputError("{}: tensor \"{}\" has {} bytes as float32, more than memory has room for",
                       reader_.name(), name, bytes);
    }
    at::Tensor values;
    reader_.read(entry, values);
    values = values.to(at::kFloat);
    if (at::isfinite(values).all().item<bool>()) return values;
    throw InputError("{}: tensor \"{}\" has a value that is not finite", reader_.name(), name);
  }

  SafetensorsReader reader_;
  const TensorEntry& inputs_;
  const TensorEntry& targets_;
};

/// Classes, or the numbers of a target.
int64_t output_count(const DataOptions& options, const TargetedTensors& train) {
  const int64_t classes = options.settings.integer("classes");
  if (train.has_labels()) return classes > 0 ? classes : train.labels(kMostClasses).max().item<int64_t>() + 1;
  if (classes == 0) return train.target_width();
  throw InputError("data.classes: expected 0, because the targets of {} are no labels but numbers, found {}",
                   train.name(), classes);
}

SampleForm form_of_tensors(const DataOptions& options) {
  const TargetedTensors train(tensor_file(options, "train_file"));
  return {train.sample_shape(), output_count(options, train)};
}

std::string task_of_tensors(const DataOptions& options) {
  return TargetedTensors(tensor_file(options, "train_file")).has_labels() ? "classification" : "regression";
}

/// The test set has the form of the training set.
void expect_same_form(const TargetedTensors& test, const TargetedTensors& train) {
  if (test.sample_shape() != train.sample_shape()) {
    throw InputError("{}: has samples of shape [{}], expected [{}], as in {}", test.name(),
                     fmt::join(test.sample_shape(), ", "), fmt::join(train.sample_shape(), ", "), train.name());
  }
  const auto targets = [](const TargetedTensors& file) {
    return file.has_labels() ? "labels" : count_text(file.target_width(), "number") + " for each sample";
  };
  if (targets(test) != targets(train)) {
    throw InputError("{}: tensor \"targets\" has {}, expected {}, as in {}", test.name(), targets(test),
                     targets(train), train.name());
  }
}

}  // namespace

TensorDataset::TensorDataset(at::Tensor inputs, at::Tensor targets)
    : inputs_(std::move(inputs)), targets_(std::move(targets)) {
  STRAIT_CHECK(inputs_.size(0) == targets_.size(0), "{} inputs, {} targets", inputs_.size(0), targets_.size(0));
}

std::vector<int64_t> TensorDataset::classes(std::span<const int64_t> ids) const {
  std::vector<int64_t> labels;
  if (targets_.is_floating_point()) return labels;
  for (const int64_t id : ids) labels.push_back(targets_[id].item<int64_t>());
  return labels;
}

Batch TensorDataset::batch(std::span<const int64_t> ids, std::optional<uint64_t> /*augmentation_key*/) const {
  Batch batch;
  batch.ids.assign(ids.begin(), ids.end());
  const at::Tensor index = at::from_blob(batch.ids.data(), {std::ssize(batch.ids)}, at::kLong);
  batch.inputs = inputs_.index_select(0, index);
  batch.targets = targets_.index_select(0, index);
  return batch;
}

DataSplits load_tensors(const DataOptions& options) {
  const TargetedTensors train(tensor_file(options, "train_file"));
  const TargetedTensors test(tensor_file(options, "test_file"));
  expect_same_form(test, train);
  const int64_t outputs = output_count(options, train);
  const auto load = [&](const TargetedTensors& file, std::string_view key, int64_t limit) {
    const int64_t count = limited(key, limit, file.size());
    const at::Tensor targets = file.has_labels() ? file.labels(outputs) : file.numbers(outputs);
    return std::make_shared<TensorDataset>(file.inputs().narrow(0, 0, count), targets.narrow(0, 0, count));
  };
  return {load(train, "data.train_limit", options.train_limit),
          load(test, "data.test_limit", options.test_limit)};
}

DataKind tensors_kind() {
  DataKind kind;
  kind.name = "tensors";
  kind.task_of_files = task_of_tensors;
  kind.keys = {
      {"train_file", "", path_text(), "safetensors file of training samples, with inputs and targets", true},
      {"test_file", "", path_text(), "safetensors file of test samples", true},
      {"classes", 0, from_to(0, kMostClasses), "so many classes; 0: as the training targets say"},
  };
  kind.form = form_of_tensors;
  kind.load = load_tensors;
  return kind;
}

}  // namespace strait
