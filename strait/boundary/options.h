#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strait/codecs/spec.h"
#include "strait/links/options.h"

namespace strait {

/// How messages of one kind, such as one direction of every boundary, are compressed.
struct LinkOptions {
  std::string codec{kUncompressed};   ///< a codec spec, see `strait codec list`
  std::string feedback{kNoFeedback};  ///< a feedback spec, see make_link()

  bool operator==(const LinkOptions&) const = default;
};

/// How the messages of a boundary are compressed.
struct BoundaryScheme {
  LinkOptions activations;  ///< forward across it
  LinkOptions gradients;    ///< backward across it

  bool operator==(const BoundaryScheme&) const = default;
};

/// What a boundary sets of a direction's LinkOptions; the rest is as at the others.
struct OwnLinkOptions {
  std::optional<std::string> codec;     ///< in place of LinkOptions::codec
  std::optional<std::string> feedback;  ///< in place of LinkOptions::feedback

  bool operator==(const OwnLinkOptions&) const = default;
};

/// An entry of compression.boundaries: a boundary that differs from the others.
struct OwnBoundaryOptions {
  std::string name;            ///< of the layer after which the network is cut
  OwnLinkOptions activations;  ///< forward across it
  OwnLinkOptions gradients;    ///< backward across it

  bool operator==(const OwnBoundaryOptions&) const = default;
};

/// In place of a codec spec at a boundary: training chooses one of AutoOptions::ladder for itself.
inline constexpr std::string_view kAutoCodec = "auto";

/// The [compression.auto] table: how codecs are chosen where one is kAutoCodec.
struct AutoOptions {
  /// Codecs that keep nothing from message to message, from the mildest to the strongest, each once.
  std::vector<std::string> ladder{"none",
                                  "bf16",
                                  "quant:8,scope=block:64,ranges=bf16",
                                  "quant:4,scope=block:64,ranges=bf16",
                                  "quant:2,scope=block:64,ranges=bf16",
                                  "topk:0.1,values=quant:8"};

  /// The relative error that a message may have: of the codecs below it the one with the fewest bytes is
  /// chosen. 0: no bound; then what the step waits for decides, and what the error costs in steps.
  double budget = 0;

  /// The network, by its name among [[networks]], for which to choose; empty: the links that training has.
  std::string network;

  /// Choose again after every so many optimizer steps too; 0: only after four batches, whenever the steps have
  /// doubled, and with the last of an epoch.
  int every_steps = 0;

  bool operator==(const AutoOptions&) const = default;
};

/// The [compression] table of a configuration.
struct CompressionOptions {
  LinkOptions activations;  ///< forward across every boundary
  LinkOptions gradients;    ///< backward across every boundary
  LinkOptions replicas;     ///< not at boundaries: the gradients that replicas of the pipeline exchange
  std::vector<OwnBoundaryOptions> boundaries;  ///< those that differ, each once
  AutoOptions automatic;                       ///< of the directions whose codec is kAutoCodec
  bool reuse_indices = false;                  ///< gradients are sent at the indices of their activations
  StoreOptions store;                          ///< of links that keep something per sample
  int start_epoch = 0;                         ///< epochs before this one train without compression
  int end_epoch = 0;                           ///< likewise those from this one on; 0 = none
  std::string evaluation = "plain";  ///< plain | frozen | live: the EvaluationMode that tables call "on"
  int diagnostics = 0;               ///< measure the messages of every n-th step; 0 = none

  /// Start at `start_epoch` from a checkpoint of another run that was taken before that epoch: the run's
  /// folder, its checkpoint folder or one checkpoint. Empty: start at epoch 0 from initial weights.
  std::string start_from;
  bool start_from_optimizer = true;  ///< also with the optimizer's state of that run

  /// Whether this epoch trains with compression.
  bool is_on_in(int epoch) const { return epoch >= start_epoch && (end_epoch == 0 || epoch < end_epoch); }

  /// What holds at a boundary, by its name.
  BoundaryScheme at(std::string_view boundary) const;

  bool operator==(const CompressionOptions&) const = default;
};

/// Whether the codec of a direction of one of the boundaries is kAutoCodec.
bool chooses_codecs(const CompressionOptions& options);

/// The same with the last of the ladder wherever a codec is kAutoCodec.
CompressionOptions with_strongest_codecs(CompressionOptions options);

/// Checks what the links, the codecs and the number of micro-batches ask of one another at every boundary;
/// `cuts` are the boundaries' names. Throws InputError `KEY: ...` with the whole key, such as
/// compression.boundaries[0].activations.codec.
void check(const CompressionOptions& options, std::span<const std::string> cuts, int micro_batches);

/// Checks what replicas' feedback with Link::needs_previous() asks of the links of boundaries: every batch
/// crosses them twice, so they keep nothing. check() does so too. Throws InputError.
void check_previous(const CompressionOptions& options, std::span<const std::string> cuts);

/// Checks what reused indices ask of the links of a boundary. Throws InputError `TABLE.KEY: ...`, such as
/// compression.gradients.codec.
void check_index_reuse(const std::string& table, const BoundaryScheme& scheme);

// Properties of the links of activations at any of the boundaries `cuts`.

/// Whether one of them compresses or has feedback.
bool compresses_activations(const CompressionOptions& options, std::span<const std::string> cuts);

/// Whether one has feedback with state; what a codec itself starts from (`warm=yes`) does not count.
bool has_feedback(const CompressionOptions& options, std::span<const std::string> cuts);

/// Whether one keeps something per row of the batch, which evaluation can read.
bool keeps_rows(const CompressionOptions& options, std::span<const std::string> cuts);

/// Whether a link of either direction at any of the boundaries keeps something per sample of the training set.
bool keeps_samples(const CompressionOptions& options, std::span<const std::string> cuts);

/// The same for something per class of samples.
bool keeps_classes(const CompressionOptions& options, std::span<const std::string> cuts);

}  // namespace strait
