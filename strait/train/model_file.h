#pragma once

#include <filesystem>

#include "strait/models/model.h"

namespace strait {

/// Writes the whole model under PyTorch's names, whatever its cuts.
void save_model(const std::filesystem::path& path, const Model& model);

/// Copies a file's tensors into the model. Every tensor of the model must be there with its shape and
/// type, and nothing else; throws InputError that names file and tensor and leaves the model as it was.
void load_model(const std::filesystem::path& path, Model& model);

}  // namespace strait
