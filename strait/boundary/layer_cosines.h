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
  /// Of these codecs, which are links that keep nothing.
  explicit LayerCosines(std::vector<std::shared_ptr<const Link>> codecs);

  /// Adds a batch: messages of float32 tensors of N samples, with features in the second of four or more
  /// dimensions and else in the last. Those that have no other of the same micro-batch do not count.
  void add(std::span<const KeptMessage> activations, std::span<const KeptMessage> gradients);

  /// Makes what was added until now count for less, beside what will be.
  void fade();

  /// Whether a batch was added.
  bool is_empty() const { return batches_ == 0; }

  /// Of each codec the cosine of the angle between the layer's mean gradients with it and without, from 0 to 1.
  /// Products of gradients of different batches alone make it, so that errors cancel which differ from sample
  /// to sample; where batches have too little in common, their own products are added in part. 1 of a codec
  /// whose relative error is at most 0.02, and at most 0.99 of another, since less than a hundredth cannot be
  /// seen. 0 of one that could not send a message since fade().
  std::vector<double> cosines() const;

 private:
  /// Sums over batches of gradients of the layer, a matrix each.
  struct Sums {
    at::Tensor gradient;  ///< undefined until a batch is added
    double square = 0;    ///< of the squares of the batches' gradients
    double product = 0;   ///< of their products with those without the codec
  };

  /// A codec of the ladder.
  struct Tried {
    std::shared_ptr<const Link> link;
    Sums sums = {};           ///< unless it is exact
    bool is_exact = true;     ///< has hardly an error, as far as is known
    bool is_checked = false;  ///< since the last choice
    bool is_refused = false;  ///< since then
  };

  void add_codec(Tried& codec, std::span<const at::Tensor> activations, std::span<const KeptMessage> gradients,
                 const at::Tensor& plain);
  double cosine_of(const Tried& codec) const;

  std::vector<Tried> codecs_;
  Sums plain_;             ///< without a codec
  double batches_ = 0;     ///< the sum of what they count for
  double of_squares_ = 0;  ///< of the squares of that
};

}  // namespace strait
