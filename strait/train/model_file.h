#pragma once

#include <filesystem>

#include "strait/models/model.h"
#include "strait/train/safetensors.h"

namespace strait {

/// The whole model under PyTorch's names; the tensors share memory with it.
TensorFile weights_of(const Model& model);

/// Writes the whole model under PyTorch's names, whatever its cuts.
void save_model(const std::filesystem::path& path, const Model& model);

/// Copies the tensors into the model. Every tensor of the model must be there with its shape and type, and
/// nothing else; throws InputError that names `path` and tensor and leaves the model as it was.
void set_weights(const std::filesystem::path& path, const TensorFile& file, Model& model);

/// Copies a file's tensors into the model under the same conditions; besides, every value must be finite.
void load_model(const std::filesystem::path& path, Model& model);

}  // namespace strait
