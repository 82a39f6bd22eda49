#pragma once

#include <filesystem>
#include <vector>

#include "strait/train/checkpoint_folder.h"
#include "strait/transport/group_part.h"

namespace strait {

// A run's folder of checkpoints holds those of rank 0, and in rank-1, rank-2, ... those of the other processes,
// as far as they share a file system.

/// The checkpoints from which a process can go on at its place, oldest first: those of which it sees its own
/// part, where as many in as many replicas wrote them, or else every part. Throws InputError for a
/// position.json that is damaged.
std::vector<CheckpointFolder::Entry> usable_checkpoints(const std::filesystem::path& checkpoints,
                                                        const Place& place);

/// The folders of one of these that the process needs.
std::vector<std::filesystem::path> checkpoint_parts(const std::filesystem::path& checkpoints,
                                                    const CheckpointFolder::Entry& entry, const Place& place);

}  // namespace strait
