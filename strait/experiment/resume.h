#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "strait/checkpoint/checkpoint.h"
#include "strait/checkpoint/checkpoint_folder.h"
#include "strait/config/config.h"
#include "strait/transport/group.h"

namespace strait {

/// Where a run begins.
struct Beginning {
  std::optional<Checkpoint> own;      ///< the run itself resumes from it
  std::optional<Checkpoint> another;  ///< starts from the weights of this one, of another run
  bool finished = false;              ///< there is nothing left to do
  std::string note;                   ///< a line about it for a person; may be empty
};

/// Where a run that starts anew begins: compression.start_from. Throws InputError when that names no
/// checkpoint taken before compression.start_epoch.
Beginning find_start(const Config& config);

/// The whole of the newest checkpoint at a path: the folder of a run, of its checkpoints, or of one. Throws
/// InputError where there is none.
Checkpoint newest_checkpoint_at(const std::filesystem::path& path);

/// Where the run of the folder resumes: at the newest checkpoint of which the processes together have every
/// part, or anew where nobody has a part of any. Collective; what a process lacks of that checkpoint it gets
/// from the others, and nothing else is changed. Throws InputError, on every process, when parts of a newer
/// checkpoint are lost, or when the configuration is not the run's, apart from the keys that may change.
Beginning find_resume(const Config& config, const std::filesystem::path& folder, Group& group);

}  // namespace strait
