#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "strait/boundary/boundary.h"
#include "strait/checkpoint/training_state.h"
#include "strait/models/model.h"

namespace strait {

/// The files of a checkpoint. Names within them are those of layers and boundaries, so that the parts of the
/// stages can be told apart.
inline constexpr const char* kWeightsFile = "model.safetensors";        ///< as a run's own
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";  ///< the optimizer's state
inline constexpr const char* kLinksFile = "links.safetensors";          ///< of boundaries and replicas
inline constexpr const char* kRandomFile = "random.safetensors";        ///< `cpu`: LibTorch's generator

/// Lists the state of something: calls the visitor for each tensor, which may read or replace it.
using StateVisit = std::function<void(StateVisitor&)>;

/// Writes a process's part of a checkpoint into an existing folder, tensor after tensor from where it stands;
/// makes nothing atomic, see CheckpointFolder. `model` holds the layers of its stages; `optimizer` lists the
/// state of their parameters, `replicas` that of the exchange between replicas. Fills in the record's
/// checksums. Throws Error when a file cannot be written.
void write_checkpoint(const std::filesystem::path& folder, const Model& model, const StateVisit& optimizer,
                      std::vector<BoundaryEndpoints>& boundaries, const StateVisit& replicas,
                      CheckpointRecord record);

/// Reads a part of a checkpoint through. Throws InputError that names the file and the tensor when it is not
/// whole and intact.
void check_part(const std::filesystem::path& folder);

/// A checkpoint to resume from. Everything throws InputError that names the file and the tensor when it is not
/// whole, not intact or does not fit; what was loaded before that stays loaded.
class Checkpoint {
 public:
  /// For the process at that place. Reads position.json of each part. One part is enough for the process that
  /// it was written by, in a group of as many; any other needs them all. Of those, tensors come from the parts
  /// of one replica: the process's own where there are as many, or else the first.
  explicit Checkpoint(const std::vector<std::filesystem::path>& parts, const RankTopology& reader = {});

  /// Of the first part.
  const std::filesystem::path& folder() const { return parts_.front().folder; }

  /// The record of the first part.
  const CheckpointRecord& record() const { return parts_.front().record; }

  /// A part that was given, with what its position.json says.
  struct Part {
    std::filesystem::path folder;  ///< that holds its files
    CheckpointRecord record;       ///< of position.json
  };

  /// All parts, in the order in which they were given.
  const std::vector<Part>& parts() const { return parts_; }

  /// The state to resume from. Its sums are such that those of all processes together are the epoch's so far.
  TrainingState state() const;

  // A process may hold some of a network's layers, and some endpoints of its boundaries: then the checkpoint
  // may have more of them than is asked for. `exactly`: it must not.

  /// Copies the weights into `model`'s layers, some or all of those of `network`. Throws InputError for a
  /// tensor that is no layer's of `network`.
  void load_weights(Model& model, const Model& network) const;

  /// Replaces the optimizer's state. Every name in the file must end in one of `last_names`, behind its last
  /// dot: other state is another optimizer's.
  void load_optimizer(const StateVisit& optimizer, const std::vector<std::string>& last_names,
                      bool exactly) const;

  /// The feedback state of every boundary and of the exchange between replicas, by name. A checkpoint without
  /// any fits all; otherwise there must be as many replicas, and the boundaries that have state must be those
  /// that had it, or, where it `may_lack` some, as in a warm-up that fills the stores of some, among them.
  /// `boundaries` are all of the pipeline, whichever endpoints are here.
  /// Where only one endpoint's state of a name was saved, because both were one, it serves both.
  void load_links(std::vector<BoundaryEndpoints>& boundaries, const StateVisit& replicas, bool exactly,
                  bool may_lack = false) const;

  /// The feedback state that evaluation reads, of the first replica. Gives false where the checkpoint has none
  /// of it: then the boundaries are as they were. Throws InputError where it has that of some boundaries only.
  bool load_evaluation_state(std::vector<BoundaryEndpoints>& boundaries) const;

  /// The state of LibTorch's generator for the CPU.
  void load_random() const;

 private:
  std::span<const Part> sources() const;

  RankTopology reader_;
  std::vector<Part> parts_;
};

}  // namespace strait
