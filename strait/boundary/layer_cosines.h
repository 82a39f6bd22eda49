#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "strait/boundary/channel.h"

namespace strait {

/// How far codecs would turn the gradient of a layer at a boundary: of an identity matrix behind the last layer
/// before it. That gradient is the sum over positions of g (x - mean of x)^T, with the gradients g that come
/// back over the boundary and the activations x that arrived. Whoever sends the gradients has both, so that
/// nothing crosses a link for it, and no pass is made. Positions are samples, and in a convolutional network
/// pixels, in a transformer tokens; of more than 256 features some are looked at, evenly spread.
class LayerCosines {
 public:
  /// Of layer gradients x and y, one of each a micro-batch, sums of their products.
  struct Products {
    double between = 0;  ///< of different micro-batches
    double within = 0;   ///< of the same

    /// Adds each.
    Products& operator+=(const Products& more);

    bool operator==(const Products&) const = default;
  };

  /// What was added with a codec.
  struct Sums {
    /// What was added elsewhere, as if it had been here.
    Sums& operator+=(const Sums& more);

    /// The cosine of the angle between the layer's mean gradients with the codec and without, from 0 to 1;
    /// nothing where no batch was added, and 0 where is_refused. Products of gradients of different
    /// micro-batches of a batch alone make it, so that errors cancel which differ from sample to sample; where
    /// these have too little in common, their own products are added in part. All pairs of micro-batches have
    /// the same weight, however long the gradients of their batch are.
    std::optional<double> cosine() const;

    Products plain;            ///< both gradients without the codec
    Products crossed;          ///< one with it
    Products coded;            ///< both
    double pairs = 0;          ///< of different micro-batches, each way round
    double micro_batches = 0;  ///< of which it is
    bool is_refused = false;   ///< it could not send a message since fade(), or the gradient was not finite
    bool operator==(const Sums&) const = default;
  };

  /// Of these codecs, which are links that keep nothing.
  explicit LayerCosines(std::vector<std::shared_ptr<const Link>> codecs);

  /// Adds a batch: its messages, of float32 tensors of N samples with features in the second of four or more
  /// dimensions and else in the last. Those that have no other of the same micro-batch do not count, neither do
  /// codecs whose relative error of the first one is at most `small_error`, nor a batch whose gradient is zero.
  /// A batch of one micro-batch has its samples in halves.
  void add(std::span<const KeptMessage> activations, std::span<const KeptMessage> gradients,
           double small_error);

  /// Makes what was added until now count for less, beside what will be.
  void fade();

  /// Of each codec.
  const std::vector<Sums>& sums() const { return sums_; }

  /// Replaces them, one of each codec, by those of a training that goes on here.
  void set_sums(std::vector<Sums> sums);

 private:
  std::vector<std::shared_ptr<const Link>> codecs_;
  std::vector<Sums> sums_;
};

}  // namespace strait
