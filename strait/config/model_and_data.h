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

/// The file that model.init names (find_initial()); empty where it names none. Throws InputError where there is
/// no such file, besides what check_published() throws.
std::filesystem::path initial_weights(const Config& config);

/// The same network with a file's weights (load_model()), on the configuration's device. Checks them as
/// check_published().
Model load_network(const Config& config, const std::filesystem::path& weights);

/// Loads the data; throws InputError, besides what load_data() throws, where the tokenizer has more tokens than
/// the model.
DataSplits load_splits(const Config& config);

}  // namespace strait
