#pragma once

#include <string>

#include "strait/links/options.h"

namespace strait {

/// How messages of one kind, such as one direction of every boundary, are compressed.
struct LinkOptions {
  std::string codec = "none";     ///< a codec spec, see `strait codec list`
  std::string feedback = "none";  ///< a link name (links/link_list.def)

  bool operator==(const LinkOptions&) const = default;
};

/// The [compression] table of a configuration.
struct CompressionOptions {
  LinkOptions activations;     ///< forward across every boundary
  LinkOptions gradients;       ///< backward across every boundary
  LinkOptions replicas;        ///< not at boundaries: the gradients that replicas of the pipeline exchange
  bool reuse_indices = false;  ///< gradients are sent at the indices of their activations
  StoreOptions store;          ///< of links that keep something per sample
  int start_epoch = 0;         ///< epochs before this one train without compression
  std::string evaluation = "plain";  ///< plain | frozen | live: the EvaluationMode that tables call "on"
  int diagnostics = 0;               ///< measure the messages of every n-th step; 0 = none

  /// Start at `start_epoch` from a checkpoint of another run that was taken before that epoch: the run's
  /// folder, its checkpoint folder or one checkpoint. Empty: start at epoch 0 from initial weights.
  std::string start_from;
  bool start_from_optimizer = true;  ///< also with the optimizer's state of that run

  bool operator==(const CompressionOptions&) const = default;
};

/// Checks what the links, the codecs and the number of micro-batches ask of one another. Throws InputError
/// `KEY: ...` with the key under [compression].
void check(const CompressionOptions& options, int micro_batches);

/// Whether a boundary's link keeps something per sample of the training set.
bool keeps_samples(const CompressionOptions& options);

/// Whether the links of activations keep something per row of the batch, which evaluation can read.
bool keeps_rows(const CompressionOptions& options);

}  // namespace strait
