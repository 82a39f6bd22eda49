#pragma once

#include <filesystem>
#include <string>

#include "strait/config/config.h"
#include "strait/data/dataset.h"
#include "strait/experiment/resume.h"
#include "strait/transport/group.h"

// What a run begins with besides its configuration: data, initial weights, a tokenizer, another run's
// checkpoint.
namespace strait {

/// The data of a run.
struct LoadedData {
  DataSplits splits;        ///< training and test set
  std::string fingerprint;  ///< strait::fingerprint() of them
};

/// Loads the data. Collective. Throws InputError, on every process, where one has other data than the first
/// one, or where a run that goes on has other data than those with which it began, as far as a fingerprint
/// tells.
LoadedData load_same_data(const Config& config, const Beginning& beginning, Group& group);

/// Collective. Throws InputError, on every process, where one has another checkpoint at compression.start_from
/// than the first one, by the checksums of its tensors.
void check_same_checkpoint(const Checkpoint& checkpoint, Group& group);

/// Collective. Throws InputError, on every process, where one has files of model.init with other bytes than the
/// first one's.
void check_same_weights(const Config& config, Group& group);

/// Throws InputError where a run that begins in the folder would replace what it begins with itself.
void check_keeps_sources(const Config& config, const std::filesystem::path& folder);

}  // namespace strait
