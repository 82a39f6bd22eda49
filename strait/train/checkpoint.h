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

/// Writes a checkpoint into an existing folder, tensor after tensor from where it stands; makes nothing
/// atomic, see CheckpointFolder. Fills in the record's checksums. Throws Error when a file cannot be written.
void write_checkpoint(const std::filesystem::path& folder, const Model& model,
                      torch::optim::Optimizer& optimizer, std::vector<Boundary>& boundaries,
                      CheckpointRecord record);

/// A checkpoint to go on from. Everything throws InputError that names the file and the tensor when it is not
/// whole, not intact or does not fit; what was loaded before that stays loaded.
class Checkpoint {
 public:
  /// Reads position.json.
  explicit Checkpoint(std::filesystem::path folder);

  const std::filesystem::path& folder() const { return folder_; }
  const CheckpointRecord& record() const { return record_; }

  void load_weights(Model& model) const;
  void load_optimizer(torch::optim::Optimizer& optimizer, const Model& model) const;

  /// The feedback state of every boundary, by name. A checkpoint without any fits all boundaries; otherwise
  /// the boundaries that have state must be those that had it.
  void load_links(std::vector<Boundary>& boundaries) const;

  /// The state of LibTorch's generator for the CPU.
  void load_random() const;

 private:
  std::filesystem::path folder_;
  CheckpointRecord record_;
};

}  // namespace strait
