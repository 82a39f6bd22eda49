#include "strait/data/tensors.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/isfinite.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/base/text.h"
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

/// What a tensor of the file may be.
struct Expected {
  std::vector<at::ScalarType> types;
  bool is_vector;  ///< of shape [N]; otherwise of [N, ...]
};

/// The file's entry of that name, which is what is expected, without an empty dimension.
const TensorEntry& entry_of(const SafetensorsReader& reader, const char* name, const Expected& expected) {
  const TensorEntry* entry = reader.find(name);
  if (entry == nullptr)
    throw InputError("{}: has no tensor \"{}\", expected \"inputs\" and \"targets\"", reader.name(), name);
  const bool fits = expected.is_vector ? entry->shape.size() == 1 : entry->shape.size() >= 2;
  const bool has_numbers = std::ranges::find(entry->shape, 0) == entry->shape.end();
  if (std::ranges::find(expected.types, entry->type) != expected.types.end() && fits && has_numbers)
    return *entry;
  std::vector<std::string> names;
  for (const auto type : expected.types) names.emplace_back(safetensors_type_name(type));
  throw InputError("{}: tensor \"{}\" is {} of shape [{}], expected {} of shape [N{}] without a 0",
                   reader.name(), name, safetensors_type_name(entry->type), fmt::join(entry->shape, ", "),
                   either_of(names), expected.is_vector ? "" : ", ...");
}

/// A file whose tensors have the right types and shapes.
class LabelledTensors {
 public:
  explicit LabelledTensors(const fs::path& path)
      : reader_(path),
        inputs_(entry_of(reader_, "inputs", {{at::kFloat, at::kHalf, at::kBFloat16}, /*is_vector=*/false})),
        targets_(entry_of(reader_, "targets", {{at::kLong, at::kInt}, /*is_vector=*/true})) {
    if (inputs_.shape[0] == targets_.shape[0]) return;
    throw InputError("{}: has {} inputs and {} targets, expected as many", reader_.name(), inputs_.shape[0],
                     targets_.shape[0]);
  }

  int64_t size() const { return targets_.shape[0]; }
  std::vector<int64_t> sample_shape() const { return {inputs_.shape.begin() + 1, inputs_.shape.end()}; }
  const std::string& name() const { return reader_.name(); }

  at::Tensor inputs() const {
    at::Tensor values;
    reader_.read(inputs_, values);
    values = values.to(at::kFloat);
    if (at::isfinite(values).all().item<bool>()) return values;
    throw InputError("{}: tensor \"inputs\" has a value that is not finite", reader_.name());
  }

  /// Labels from 0 to classes - 1.
  at::Tensor targets(int64_t classes) const {
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

 private:
  SafetensorsReader reader_;
  const TensorEntry& inputs_;
  const TensorEntry& targets_;
};

int64_t class_count(const DataOptions& options, const LabelledTensors& train) {
  const int64_t classes = options.settings.integer("classes");
  return classes > 0 ? classes : train.targets(kMostClasses).max().item<int64_t>() + 1;
}

SampleForm form_of_tensors(const DataOptions& options) {
  const LabelledTensors train(tensor_file(options, "train_file"));
  return {train.sample_shape(), class_count(options, train)};
}

}  // namespace

TensorDataset::TensorDataset(at::Tensor inputs, at::Tensor targets)
    : inputs_(std::move(inputs)), targets_(std::move(targets)) {
  STRAIT_CHECK(inputs_.size(0) == targets_.size(0), "{} inputs, {} targets", inputs_.size(0), targets_.size(0));
}

std::vector<int64_t> TensorDataset::classes(std::span<const int64_t> ids) const {
  std::vector<int64_t> labels;
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
  const LabelledTensors train(tensor_file(options, "train_file"));
  const LabelledTensors test(tensor_file(options, "test_file"));
  if (test.sample_shape() != train.sample_shape()) {
    throw InputError("{}: has samples of shape [{}], expected [{}], as in {}", test.name(),
                     fmt::join(test.sample_shape(), ", "), fmt::join(train.sample_shape(), ", "), train.name());
  }
  const int64_t classes = class_count(options, train);
  const auto load = [&](const LabelledTensors& file, std::string_view key, int64_t limit) {
    const int64_t count = limited(key, limit, file.size());
    return std::make_shared<TensorDataset>(file.inputs().narrow(0, 0, count),
                                           file.targets(classes).narrow(0, 0, count));
  };
  return {load(train, "data.train_limit", options.train_limit),
          load(test, "data.test_limit", options.test_limit)};
}

DataKind tensors_kind() {
  DataKind kind;
  kind.name = "tensors";
  kind.task = "classification";
  kind.keys = {
      {"train_file", "", path_text(), "safetensors file of training samples, with inputs and targets", true},
      {"test_file", "", path_text(), "safetensors file of test samples", true},
      {"classes", 0, from_to(0, kMostClasses), "so many classes; 0: as the training labels say"},
  };
  kind.form = form_of_tensors;
  kind.load = load_tensors;
  return kind;
}

}  // namespace strait
