#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "strait/checkpoint/options.h"

namespace strait {

/// A run's checkpoints: a folder each, `epoch-0003-batch-00020`, made under a name that ends in ".partial" and
/// given its own name when it is whole and on the disk. So a crash leaves the earlier ones as they are, and
/// every folder that bears such a name was complete once. What has another name is not touched.
class CheckpointFolder {
 public:
  /// The position that a checkpoint is named for: so many batches into the epoch.
  struct Entry {
    int epoch = 0;        ///< from 0
    int64_t batches = 0;  ///< of the epoch, done

    /// The name of its folder.
    std::string name() const;
    bool operator==(const Entry&) const = default;

    /// Whether it comes before the other in the training.
    bool operator<(const Entry& other) const {
      return epoch != other.epoch ? epoch < other.epoch : batches < other.batches;
    }
  };

  /// The entry of a folder's name; nothing for another name.
  static std::optional<Entry> entry_of(const std::string& name);

  /// The folder of the parts of a rank, in a run's folder of checkpoints: that of rank 0 is the folder itself.
  static std::filesystem::path part_of(const std::filesystem::path& checkpoints, int rank);

  /// The folder of the copies of another rank's parts, in the folder of those of the rank that keeps them.
  static std::filesystem::path copy_of(const std::filesystem::path& parts, int rank);

  /// A folder of parts, and the rank that they are of.
  struct Home {
    std::filesystem::path path;  ///< of the folder
    int rank = 0;                ///< whose parts are in it
  };

  /// The folders of copies in a folder of parts.
  static std::vector<Home> copies_in(const std::filesystem::path& parts);

  /// All folders of parts in a run's folder of checkpoints: of every rank its own, and the copies that it
  /// keeps.
  static std::vector<Home> homes_in(const std::filesystem::path& checkpoints);

  /// Makes nothing yet.
  CheckpointFolder(std::filesystem::path path, CheckpointOptions options);

  /// The folder in which the checkpoints' folders are.
  const std::filesystem::path& path() const { return path_; }

  /// When checkpoints are taken, and which of them stay.
  const CheckpointOptions& options() const { return options_; }

  /// The complete checkpoints, oldest first; none where the folder does not exist.
  std::vector<Entry> entries() const;

  /// The folder of a complete checkpoint.
  std::filesystem::path path_of(const Entry& entry) const { return path_ / entry.name(); }

  /// The folder of one that is not complete.
  std::filesystem::path partial_of(const Entry& entry) const;

  /// Those that were begun and have not got their name.
  std::vector<Entry> partial_entries() const;

  /// Whether the options ask for a checkpoint before this epoch, after so many optimizer steps.
  bool is_due_before(int epoch) const;

  /// Whether the options ask for a checkpoint after one of the last `steps` of so many optimizer steps.
  bool is_due_after(uint64_t step, uint64_t steps = 1) const;

  /// Whether the checkpoint before this epoch stays for good.
  bool keeps(int epoch) const;

  /// Lets `write` make the files of a checkpoint in a folder of its own. Does nothing where that position has a
  /// checkpoint already: runs repeat bit for bit. Throws Error, and passes on what `write` throws, with the
  /// earlier checkpoints untouched.
  void write(const Entry& entry, const std::function<void(const std::filesystem::path&)>& write);

  /// Makes the empty folder in which the files of a checkpoint can be written; what was begun before goes.
  std::filesystem::path begin(const Entry& entry);

  /// Removes what was begun and nobody will give its name, as far as that can be removed.
  void abandon(const Entry& entry) const;

  /// Where the files of a checkpoint are, whether or not it has its name yet.
  std::filesystem::path written(const Entry& entry) const;

  /// Gives the checkpoint that was written its name. Throws Error.
  void publish(const Entry& entry);

  /// Removes the checkpoints that the options do not keep.
  void prune();

  /// Removes the checkpoints that are not among these.
  void retain(const std::vector<Entry>& entries);

  /// Removes all checkpoints.
  void clear();

 private:
  bool stays(size_t place, const std::vector<Entry>& all) const;
  void remove(const Entry& entry);
  void remove_partial();

  std::filesystem::path path_;
  CheckpointOptions options_;
};

}  // namespace strait
