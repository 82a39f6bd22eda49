#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "strait/boundary/diagnostics.h"
#include "strait/boundary/evaluation.h"
#include "strait/codecs/index_set.h"
#include "strait/links/link.h"

namespace strait {

/// What a message is sent for. Only messages of training are counted.
struct MessageMode {
  bool training = true;
  bool compressed = true;
  bool stops = false;                                 ///< sent along, see FrameHeader
  EvaluationMode evaluation = EvaluationMode::plain;  ///< of a compressed message that is none of training
};

/// What crossed one direction of one boundary in training.
struct Traffic {
  uint64_t messages = 0;
  uint64_t raw_bytes = 0;   ///< float32 bytes of the tensors
  uint64_t wire_bytes = 0;  ///< everything that crosses: header, scales, indices, values
  double encode_seconds = 0;
  double decode_seconds = 0;

  Traffic& operator+=(const Traffic& other);

  /// Uncompressed over compressed; 1 when nothing was sent.
  double ratio() const {
    return wire_bytes == 0 ? 1.0 : static_cast<double>(raw_bytes) / static_cast<double>(wire_bytes);
  }
};

/// On one side of a boundary: the positions that the activations of each micro-batch kept, for the gradients
/// that reuse them. One thread may send while another receives.
class IndexMemory {
 public:
  void keep(uint32_t micro_batch, IndexSet indices) {
    const std::scoped_lock lock(mutex_);
    sets_[micro_batch] = std::move(indices);
  }

  /// Those of a micro-batch, until they are dropped or replaced; null where there are none.
  const IndexSet* find(uint32_t micro_batch) const {
    const std::scoped_lock lock(mutex_);
    const auto found = sets_.find(micro_batch);
    return found == sets_.end() ? nullptr : &found->second;
  }
  void drop(uint32_t micro_batch) {
    const std::scoped_lock lock(mutex_);
    sets_.erase(micro_batch);
  }

 private:
  mutable std::mutex mutex_;
  std::map<uint32_t, IndexSet> sets_;
};

/// What both ends of one direction of one boundary agree on.
struct ChannelSpec {
  std::string boundary_name;  ///< the layer after which the network is cut
  uint16_t boundary = 0;
  Direction direction = Direction::activation;
  std::shared_ptr<const Link> link;
  int diagnostics = 0;                             ///< measure the messages of every n-th step; 0 = none
  std::shared_ptr<IndexMemory> indices = nullptr;  ///< of this end's side, where gradients reuse indices
};

/// The links that a channel uses besides the trained one, the same at both ends.
struct OtherLinks {
  explicit OtherLinks(const ChannelSpec& spec);
  std::shared_ptr<const Link> uncompressed;
  std::shared_ptr<const Link> bare;
};

/// The sending end of a channel: turns tensors into sealed frames.
class Sender {
 public:
  /// The encoder is one end of the spec's link, made by it.
  Sender(ChannelSpec spec, std::unique_ptr<Encoder> encoder);
  explicit Sender(const ChannelSpec& spec) : Sender(spec, spec.link->make_encoder()) {}

  /// Encodes the next message. `context` needs no boundary and direction. Throws NumericError that names
  /// boundary, direction, micro-batch and step; no state has changed then.
  Buffer encode(const at::Tensor& x, MessageContext context, MessageMode mode,
                FrameCheck check = FrameCheck::verify);

  /// Says which samples the batch after the next one has.
  void prefetch(std::span<const int64_t> ids) { encoder_->prefetch(ids); }

  void visit_state(StateVisitor& visitor) { encoder_->visit_state(visitor); }
  const Link& link() const { return *spec_.link; }

  /// What was measured since the last reset; nothing unless the spec asks for it.
  std::optional<Diagnostics> diagnostics() const { return diagnostics_.measured(); }
  void reset_diagnostics() { diagnostics_.reset(); }

  /// messages, raw_bytes, wire_bytes and encode_seconds since the last call.
  Traffic take_traffic();

 private:
  ChannelSpec spec_;
  OtherLinks others_;
  std::unique_ptr<Encoder> encoder_;
  std::unique_ptr<Encoder> uncompressed_;
  std::unique_ptr<Encoder> bare_;
  uint64_t sequence_ = 0;
  Traffic traffic_;
  DiagnosticsRecorder diagnostics_;
};

/// The receiving end of a channel: checks frames and turns them into tensors.
class Receiver {
 public:
  /// The decoder is one end of the spec's link, made by it.
  Receiver(ChannelSpec spec, std::unique_ptr<Decoder> decoder);
  explicit Receiver(const ChannelSpec& spec) : Receiver(spec, spec.link->make_decoder()) {}

  /// Bytes of the largest frame that a message of this shape can have in any mode.
  size_t frame_bound(const MessageMeta& meta) const;

  /// Decodes the next message; the tensor may use the frame's memory. Throws WireError that names boundary
  /// and direction, and NumericError that does where the link's state cannot hold what is decoded.
  at::Tensor decode(Buffer frame, const MessageMeta& meta, MessageContext context, MessageMode mode,
                    FrameCheck check = FrameCheck::verify);

  /// Whether the sender of the last message stops after its step, or asks to.
  bool peer_stops() const { return peer_stops_; }

  void prefetch(std::span<const int64_t> ids) { decoder_->prefetch(ids); }

  void visit_state(StateVisitor& visitor) { decoder_->visit_state(visitor); }
  const Link& link() const { return *spec_.link; }

  /// decode_seconds since the last call.
  Traffic take_traffic();

 private:
  ChannelSpec spec_;
  OtherLinks others_;
  std::unique_ptr<Decoder> decoder_;
  std::unique_ptr<Decoder> uncompressed_;
  std::unique_ptr<Decoder> bare_;
  uint64_t sequence_ = 0;
  bool peer_stops_ = false;
  Traffic traffic_;
};

}  // namespace strait
