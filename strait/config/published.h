#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "strait/config/config.h"

namespace strait {

/// The file of weights in a folder as Hugging Face leaves it: model.safetensors, or else the index of the files
/// that it is split into; `path` itself where it is no folder. Throws InputError for a folder that has neither.
std::filesystem::path weights_at(const std::filesystem::path& path);

/// Where model.init is: a relative path from where the process runs, or else from data.root; weights_at()
/// there. Nothing where there is nothing.
std::optional<std::filesystem::path> find_initial(const std::string& init, const std::string& data_root);

/// Gives keys of the model what a config.json beside the weights says of them (ModelKind::published). Throws
/// InputError where it is of a network that the kind is not.
void take_published(ModelOptions& model, const std::filesystem::path& weights);

/// Throws InputError where a config.json beside the weights, as Hugging Face leaves one, is of another network:
/// shapes of tensors tell neither heads nor norms nor rotary positions.
void check_published(const Config& config, const std::filesystem::path& weights);

}  // namespace strait
