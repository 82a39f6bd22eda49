#include "strait/train/model_file.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "strait/base/error.h"
#include "strait/base/text.h"

namespace strait {
namespace {

std::string describe(const at::Tensor& tensor) {
  return fmt::format("{} of shape [{}]", toString(tensor.scalar_type()), fmt::join(tensor.sizes(), ", "));
}

void check_fits(const std::filesystem::path& path, const TensorFile& file, const Model& model) {
  std::vector<std::string> names;
  for (const auto& [name, value] : model.state()) {
    names.push_back(name);
    const at::Tensor* found = file.find(name);
    if (found == nullptr) throw InputError("{}: tensor \"{}\" is missing", path.string(), name);
    if (found->sizes() != value.sizes() || found->scalar_type() != value.scalar_type()) {
      throw InputError("{}: tensor \"{}\" is {}, expected {}", path.string(), name, describe(*found),
                       describe(value));
    }
  }
  for (const auto& [name, value] : file.tensors) {
    if (std::ranges::find(names, name) == names.end()) {
      throw InputError("{}: tensor \"{}\" is not part of the model{}", path.string(), name,
                       suggestion(name, names));
    }
  }
}

void check_finite(const std::filesystem::path& path, const TensorFile& file) {
  for (const auto& [name, value] : file.tensors) {
    if (value.is_floating_point() && !at::isfinite(value).all().item<bool>()) {
      throw InputError("{}: tensor \"{}\" has a value that is not finite", path.string(), name);
    }
  }
}

}  // namespace

TensorFile weights_of(const Model& model) { return {model.state(), {{"format", "pt"}}}; }

void save_model(const std::filesystem::path& path, const Model& model) {
  write_safetensors(path, weights_of(model));
}

void set_weights(const std::filesystem::path& path, const TensorFile& file, Model& model) {
  check_fits(path, file, model);
  const torch::NoGradGuard no_grad;
  for (auto& [name, value] : model.state()) value.copy_(*file.find(name));
}

void load_model(const std::filesystem::path& path, Model& model) {
  const TensorFile file = read_safetensors(path);
  check_finite(path, file);
  set_weights(path, file, model);
}

}  // namespace strait
