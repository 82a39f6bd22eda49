#pragma once

#include <filesystem>

#include "strait/formats/safetensors.h"
#include "strait/models/model.h"

namespace strait {

/// The whole model under PyTorch's names; the tensors share memory with it.
TensorFile weights_of(const Model& model);

/// Writes the whole model under PyTorch's names, whatever its cuts; of a tie the first parameter only, as
/// Hugging Face does.
void save_model(const std::filesystem::path& path, const Model& model);

/// Copies the tensors into the model. Every tensor of the model must be there with its shape, and nothing else
/// but what the model says a file may have besides (Model::file_prefix, Model::file_extras); the second of a
/// tie may be missing. float32 values are read from F32, F16 or BF16, others from their own type. Throws
/// InputError that names `path`, tensor, what was expected and what was found, and leaves the model as it was.
void set_weights(const std::filesystem::path& path, const TensorFile& file, Model& model);

/// The files in which weights lie: `path` itself or, where it ends with `.json`, those beside it that it names,
/// an index as Hugging Face leaves one. Throws InputError.
std::vector<std::filesystem::path> weight_files(const std::filesystem::path& path);

/// Copies a file's tensors into the model under the same conditions; besides, every value must be finite and
/// both of a tie equal. Holds one tensor of the file at a time, or two to compare them. The weights may lie in
/// several files (weight_files()).
void load_model(const std::filesystem::path& path, Model& model);

/// The same for a file to start training from, which may lack tensors of layers that are NamedLayer::added;
/// these stay as they are.
void load_initial(const std::filesystem::path& path, Model& model);

}  // namespace strait
