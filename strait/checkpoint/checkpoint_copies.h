#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "strait/checkpoint/checkpoint_folder.h"
#include "strait/transport/group.h"

namespace strait {

/// Keep so many copies where the ranks are on several machines, none otherwise: checkpoint.copies = -1.
inline constexpr int kCopiesByMachines = -1;

/// For each rank those that keep a copy of its part of every checkpoint: on another machine where there is one
/// (`machines` names each rank's), otherwise the next rank, and so that all keep about as many. There are no
/// more than the other ranks.
std::vector<std::vector<int>> copy_holders(const std::vector<std::string>& machines, int copies);

/// A part of a checkpoint that is to lie with another rank too.
struct PartMove {
  int from = 0;                  ///< the rank that has it
  int to = 0;                    ///< another one
  std::filesystem::path source;  ///< the part's folder; on `from`
  std::filesystem::path target;  ///< an empty folder; on `to`
};

/// Moves parts, as many at a time as have no rank in common, all ranks in step: nobody waits for longer than
/// one piece of a file takes. Collective, with the same moves in the same order everywhere; the paths need only
/// be right on the rank that they belong to. The files are then on the disk, bit for bit. Throws Error.
void move_parts(Group& group, const std::vector<PartMove>& moves);

/// Writes what a process leaves of each checkpoint: its own part, and the copies that it keeps of others'.
class CheckpointWriter {
 public:
  /// For a rank, in the run's folder of checkpoints. `holders` is what copy_holders() gives; empty: no copies.
  CheckpointWriter(const std::filesystem::path& checkpoints, int rank, const CheckpointOptions& options,
                   std::vector<std::vector<int>> holders = {});

  /// The folder of this process's own parts.
  const CheckpointFolder& own() const { return own_; }

  /// Lets `write` make the files of this process's part. The checkpoint has its name only once every process
  /// has written its part and the copies that it keeps, and the one before stays until all have their names: so
  /// there is always one that all processes have. Where one cannot write, the others keep nothing of it either.
  /// Collective. Throws Error, never an InputError.
  void write(Group& group, const CheckpointFolder::Entry& entry,
             const std::function<void(const std::filesystem::path&)>& write);

 private:
  struct Copy {
    int rank = 0;  ///< whose part it is of
    CheckpointFolder folder;
  };
  std::vector<PartMove> moves(const CheckpointFolder::Entry& entry) const;

  int rank_;
  CheckpointFolder own_;
  std::vector<std::vector<int>> holders_;
  std::vector<Copy> copies_;  ///< that this process keeps
};

}  // namespace strait
