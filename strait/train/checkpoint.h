#pragma once

#include <filesystem>
#include <vector>

#include "strait/boundary/boundary.h"
#include "strait/models/model.h"
#include "strait/train/position.h"

namespace strait {

/// The files of a checkpoint. Names within them are those of layers and boundaries, so that the parts of the
/// stages can be told apart.
inline constexpr const char* kWeightsFile = "model.safetensors";        ///< as a run's own
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";  ///< visit_state() of the optimizer
inline constexpr const char* kLinksFile = "links.safetensors";          ///< Boundary::visit_state()
inline constexpr const char* kRandomFile = "random.safetensors";        ///< `cpu`: LibTorch's generator

/// Writes a process's part of a checkpoint into an existing folder, tensor after tensor from where it stands;
/// makes nothing atomic, see CheckpointFolder. `model` holds the layers of its stages. Fills in the record's
/// checksums. Throws Error when a file cannot be written.
void write_checkpoint(const std::filesystem::path& folder, const Model& model,
                      torch::optim::Optimizer& optimizer, std::vector<Boundary>& boundaries,
                      CheckpointRecord record);

/// A checkpoint to go on from. Everything throws InputError that names the file and the tensor when it is not
/// whole, not intact or does not fit; what was loaded before that stays loaded.
class Checkpoint {
 public:
  /// Reads position.json of each part. One part is enough for the process that it was written by, in a group of
  /// as many; any other needs them all.
  explicit Checkpoint(std::vector<std::filesystem::path> parts);

  /// Of the first part.
  const std::filesystem::path& folder() const { return parts_.front(); }
  const CheckpointRecord& record() const { return records_.front(); }

  /// The position to go on from as `rank` of `ranks`. Its sums are such that those of all ranks together are
  /// the epoch's so far.
  Position position_for(int rank, int ranks) const;

  // `model` may hold some of a network's layers, and boundaries some of their ends: then the checkpoint may
  // have more than is asked for. `exactly`: it must not.

  void load_weights(Model& model, bool exactly) const;
  void load_optimizer(torch::optim::Optimizer& optimizer, const Model& model, bool exactly) const;

  /// The feedback state of every boundary, by name. A checkpoint without any fits all boundaries; otherwise
  /// the boundaries that have state must be those that had it. Where only one end's state of a name was
  /// saved, because both were one, it serves both.
  void load_links(std::vector<Boundary>& boundaries, bool exactly) const;

  /// The state of LibTorch's generator for the CPU.
  void load_random() const;

 private:
  std::vector<std::filesystem::path> parts_;
  std::vector<CheckpointRecord> records_;
};

}  // namespace strait
