#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strait/base/times.h"
#include "strait/boundary/options.h"
#include "strait/codecs/message.h"
#include "strait/links/link.h"

namespace strait {

/// How many bytes of other input are read before a copy of an input has its turn again, so that it is out of
/// the cache by then: 75 MB, or the size of the last-level cache where that is larger. What the system says of
/// the cache counts, though a virtual machine may share it with others.
size_t cold_distance();

/// Float32 tensors of one shape that take turns, so that each comes from memory and not from the cache.
class BenchInput {
 public:
  /// `copies` is [n, shape...], float32, contiguous, of at least one element; `data` says what they are.
  BenchInput(std::string data, at::Tensor copies);

  /// Normal numbers, the same in every process, each copy another draw; with `relu` the negative ones are 0.
  /// There are as many copies as make `distance` bytes between two turns of one.
  static BenchInput drawn(const std::vector<int64_t>& shape, bool relu, size_t distance);

  /// Copies of `x`, of at least one dimension and element.
  static BenchInput repeated(std::string data, const at::Tensor& x, size_t distance);

  /// What the tensors are, for people.
  const std::string& data() const { return data_; }

  /// The shape of each.
  const MessageMeta& meta() const { return meta_; }

  /// Bytes of each as float32.
  size_t bytes() const { return meta_.elements() * sizeof(float); }

  /// How many take turns.
  int64_t copies() const { return copies_.size(0); }

  /// The one that has not been used for the longest time.
  at::Tensor next();

 private:
  std::string data_;
  at::Tensor copies_;
  MessageMeta meta_;
  int64_t turn_ = 0;
};

/// What a message costs, in bits of payload for every element of the tensor. A frame has 512 bits more.
struct MessageBits {
  double all = 0;  ///< of the payload
  /// Of a codec that selects: all but the values, which is the index sets and their codes and lengths.
  std::optional<double> index;
  std::optional<double> index_bound;  ///< log2 of the number of index sets that the message chooses from
};

/// Bits of a message of `payload_bytes` over the link, of samples that it knows where it keeps
/// something per sample.
MessageBits message_bits(const Link& link, const MessageMeta& meta, size_t payload_bytes);

/// |x - seen| / |x|, 2-norms; 0 where x is 0.
double relative_error(const at::Tensor& x, const at::Tensor& seen);

/// A message that was verified.
struct VerifiedMessage {
  size_t payload_bytes = 0;   ///< without the frame's header
  double relative_error = 0;  ///< relative_error() of what is decoded
};

/// Sends three messages over new endpoints of the link around the codec and compares bit for bit what is
/// decoded with Link::reference() over Codec::reconstruct(). Gives the last message that does not go in full,
/// or else the first. Throws Error where they differ.
VerifiedMessage verify_link(const std::string& feedback, const std::shared_ptr<const Codec>& codec,
                            BenchInput& input);

/// Rates are 10^9 bytes of float32 tensor per second, of the median time.
struct CodecRates {
  double memcpy_gb_s = 0;                ///< between tensors that are as cold
  double encode_gb_s = 0;                ///< of Encoder::encode()
  double decode_gb_s = 0;                ///< of Decoder::decode()
  double encode_memcpy_ratio = 0;        ///< over the rate of the memcpy calls that took turns with it
  double decode_memcpy_ratio = 0;        ///< likewise
  std::optional<double> reference_gb_s;  ///< of Link::reference() over Codec::reference(), encoded and decoded
  MessageBits bits;                      ///< of the message that was timed
  double relative_error = 0;             ///< of a message that was verified before
};

/// Verifies and times a codec with its feedback. Encoding and decoding take turns with memcpy. Every call reads
/// another copy of the input, or a message that has waited as long; what is written, memcpy's target as well as
/// the decoded tensor, goes where the last one went, with five times the tensor's bytes read and written in
/// between. Decoding makes its tensor: the caller sees to an allocator that keeps what is freed. Payloads carry
/// no frame. Throws InputError for a wrong codec or feedback name, NumericError for input that the codec cannot
/// send and Error where the codec is wrong.
CodecRates bench_codec(const LinkOptions& options, BenchInput& input, const Repetitions& repetitions);

}  // namespace strait
