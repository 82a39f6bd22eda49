#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "strait/checkpoint/checkpoint_folder.h"
#include "strait/transport/group.h"
#include "strait/transport/group_part.h"

namespace strait {

// A run's folder of checkpoints holds the parts of rank 0, and in rank-1, rank-2, ... those of the other
// processes that run on this machine or share its file system. In the folder `copies` of each of these lie
// copies of other ranks' parts, see checkpoint_copies.h.

/// A part of a checkpoint, whole in itself.
struct CheckpointPart {
  CheckpointFolder::Entry entry;  ///< the checkpoint's position
  RankTopology writer;            ///< the process that wrote it
  bool is_named = true;           ///< its folder has the checkpoint's name; if not, it was to be given next
  std::filesystem::path folder;   ///< that holds its files

  /// Whether it is that rank's part of that checkpoint, as it was written by so many processes.
  bool is(const CheckpointFolder::Entry& other, const RankTopology& place) const {
    return entry == other && writer.rank == place.rank && writer.is_alike(place);
  }
};

/// Every part in a run's folder of checkpoints. Throws InputError for a position.json that is damaged.
std::vector<CheckpointPart> parts_in(const std::filesystem::path& checkpoints);

/// Gives all parts of the checkpoint their name.
void name_parts(const std::filesystem::path& checkpoints, const CheckpointFolder::Entry& entry);

/// What each rank of the group sees; without the folders, which are each rank's own.
std::vector<std::vector<CheckpointPart>> gather_parts(Group& group, const std::vector<CheckpointPart>& mine);

/// Where processes can resume together.
struct ResumePoint {
  /// A checkpoint and the ranks whose parts nobody has.
  struct Loss {
    CheckpointFolder::Entry entry;  ///< the checkpoint
    std::vector<int> ranks;         ///< that wrote the lost parts
  };

  std::optional<CheckpointFolder::Entry> entry;  ///< the newest checkpoint of which every part is somewhere
  RankTopology writers;                          ///< of it; the rank means nothing
  bool names_all = true;                         ///< every part of it has its name
  std::vector<Loss> losses;                      ///< of checkpoints behind it, the newest first
};

/// The newest checkpoint that the processes have all parts of, among what each of them sees. `reader` is one of
/// them. Parts get their names only once all are written: where one has it, the others count without.
ResumePoint find_resume_point(const std::vector<std::vector<CheckpointPart>>& seen, const RankTopology& reader);

/// The parts that a process needs of a checkpoint: its own, where as many in as many replicas with the same
/// stages wrote it, or else all. As places of the writers.
std::vector<RankTopology> needed_parts(const RankTopology& writers, const RankTopology& reader,
                                       bool other_stages = false);

/// Where these are among the parts in a folder; nothing where one is not there.
std::optional<std::vector<std::filesystem::path>> folders_of(const std::vector<CheckpointPart>& parts,
                                                             const CheckpointFolder::Entry& entry,
                                                             const std::vector<RankTopology>& needed);

}  // namespace strait
