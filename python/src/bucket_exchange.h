#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "python/src/state.h"
#include "strait/boundary/peer_channels.h"

namespace strait::python {

/// The gradients that the ranks of a DistributedDataParallel exchange, bucket by bucket: each rank sends a
/// message to all, and all decode the messages of all, their own too, and average them in the order of ranks.
/// So all get the same bits, whatever the codec. Encoder and decoders of a bucket keep state from step to step.
///
/// A rank whose gradient cannot be sent tells the others why, in the place of its message, so that all fail.
class BucketExchange {
 public:
  /// Throws InputError for links that serve no gradients.
  BucketExchange(const std::string& codec, const std::string& feedback, int rank, int ranks, uint64_t seed);

  /// This rank's message of a bucket's gradient [elements], with room behind it: uint8, of the same size at all
  /// ranks, on the CPU. A bucket whose elements changed begins anew.
  at::Tensor encode(int64_t bucket, const at::Tensor& gradient, uint64_t step);

  /// The mean over ranks, float32 [elements] on the CPU, of their messages, [ranks, size]. Throws NumericError
  /// where a rank could not send, WireError.
  at::Tensor decode(int64_t bucket, const at::Tensor& messages, uint64_t step);

  /// Begins a bucket anew, which is of other parameters now.
  void forget(int64_t bucket);

  /// By bucket the tensors that the links carry from message to message, by name.
  using State = std::map<int64_t, StateTensors>;

  /// Copies.
  State state();

  /// Replaces all of it. Throws InputError that names the tensor.
  void load_state(State state);

  /// What this rank has sent to each of the others; wire_bytes with the room behind the messages.
  Traffic traffic();

 private:
  struct Channels;
  Channels& channels_of(int64_t bucket, int64_t elements);

  std::shared_ptr<const Link> link_;
  int rank_;
  int ranks_;
  uint64_t seed_;
  std::map<int64_t, std::shared_ptr<Channels>> channels_;
  Traffic traffic_;
  std::mutex mutex_;
};

}  // namespace strait::python
