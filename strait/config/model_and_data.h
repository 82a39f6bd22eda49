#pragma once

#include <filesystem>

#include "strait/config/config.h"
#include "strait/data/dataset.h"
#include "strait/models/model.h"

namespace strait {

/// Builds the network that the configuration describes, for its data, and prepares the process for it, one of
/// `processes` on this machine. Seeds LibTorch's generator, so that the same configuration gives the same
/// initial weights, whatever the cuts and in every process.
Model make_network(const Config& config, int processes = 1);

/// Throws InputError where a config.json beside the weights, as Hugging Face leaves one, is of another network
/// (ModelKind::published): shapes of tensors tell neither heads nor norms nor rotary positions.
void check_published(const Config& config, const std::filesystem::path& weights);

/// The file that model.init names: a relative path from where the process runs, or else from data.root. Throws
/// InputError where there is none, besides what check_published() throws.
std::filesystem::path initial_weights(const Config& config);

/// The same network with a file's weights (load_model()), on the configuration's device. Checks them as
/// check_published().
Model load_network(const Config& config, const std::filesystem::path& weights);

/// Loads the data; throws InputError, besides what load_data() throws, where the tokenizer has more tokens than
/// the model.
DataSplits load_splits(const Config& config);

}  // namespace strait
