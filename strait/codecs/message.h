#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "strait/wire/frame.h"

namespace at {
class Tensor;
}

namespace strait {

struct IndexSet;

/// What both endpoints of a boundary know about a message before it is sent. All messages are float32 but those
/// of integers.
struct MessageMeta {
  std::vector<int64_t> shape;  ///< [rows, ...]: the first dimension counts samples

  /// Number of samples.
  size_t rows() const { return shape.empty() ? 1 : static_cast<size_t>(shape.front()); }

  /// Elements of one sample (d in docs/operators.md).
  size_t row_size() const {
    size_t size = 1;
    for (size_t i = 1; i < shape.size(); ++i) size *= static_cast<size_t>(shape[i]);
    return size;
  }

  /// Elements of all samples.
  size_t elements() const { return rows() * row_size(); }
};

/// Where a message stands in the run. Random numbers are keyed by it, so that a message can be encoded
/// again with the same bytes; it does not influence a deterministic codec. Input only.
struct MessageContext {
  uint64_t seed = 0;                            ///< the run's seed
  uint16_t boundary = 0;                        ///< the boundary that the message crosses
  Direction direction = Direction::activation;  ///< activations or gradients
  uint64_t step = 0;                            ///< optimizer steps taken before the batch
  uint32_t micro_batch = 0;                     ///< position in the batch; not part of any random key
  size_t first_row = 0;                         ///< row of the batch at which the message's first sample stands
  uint16_t batch = 0;  ///< tells the batch from others, for the receiver to compare; 0: not known

  /// Where the tensor is that is encoded, and where the decoded one is to be; what a link keeps follows it.
  c10::Device device = c10::kCPU;

  /// The samples' indices in the training set, one per row, where they are known: in training.
  std::span<const int64_t> ids = {};

  /// The samples' classes, one per row, where they are known: in training.
  std::span<const int64_t> classes = {};

  /// The indices that both endpoints know already, for a message that reuses those of another; else null.
  const IndexSet* indices = nullptr;

  /// Of the encoder, for a message that needs it (Encoder::needs_previous()): the message that the same samples
  /// and draws give at the weights that the step before began with, of the same shape; else null.
  const at::Tensor* previous = nullptr;

  /// Where a payload stays on a device instead of among the frame's bytes: the sender's codec puts it here, and
  /// the receiver's takes it from here, where it makes as many bytes there; else null. Of links that
  /// send codec messages (Link::sends_codec_messages()).
  at::Tensor* payload = nullptr;

  // What the ends are to report of the message besides what it is there for.
  bool wants_indices = false;   ///< the indices of the elements that it keeps
  bool wants_received = false;  ///< of the encoder: what the receiver will see
};

}  // namespace strait
