#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "strait/boundary/diagnostics.h"
#include "strait/boundary/evaluation.h"
#include "strait/boundary/traffic.h"
#include "strait/codecs/device_order.h"
#include "strait/codecs/index_set.h"
#include "strait/links/link.h"

namespace strait {

/// What a message is sent for. Only messages of training are counted.
struct MessageMode {
  bool training = true;                               ///< counted, and updates the state of the link
  bool compressed = true;                             ///< through the link; otherwise as they are
  EvaluationMode evaluation = EvaluationMode::plain;  ///< of a compressed message that is none of training
  bool diagnosed = true;                              ///< among the messages that diagnostics measure
  bool trial = false;  ///< of Executor::trial(): not of training, and zeros where it cannot be sent

  /// Whether its pass goes backward too.
  bool has_gradients() const { return training || trial; }

  /// Whether it is among the messages that a channel keeps: those of a second pass of the batch are not.
  bool is_kept() const { return trial || (training && diagnosed); }
};

/// On one side of a boundary: the indices of the activations of each micro-batch, for the gradients that reuse
/// them. One thread may send while another receives.
class IndexMemory {
 public:
  /// Keeps the indices of a micro-batch until they are dropped or replaced.
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

  /// Forgets those of a micro-batch.
  void drop(uint32_t micro_batch) {
    const std::scoped_lock lock(mutex_);
    sets_.erase(micro_batch);
  }

 private:
  mutable std::mutex mutex_;
  std::map<uint32_t, IndexSet> sets_;
};

/// What both endpoints of one direction of one boundary agree on.
struct ChannelSpec {
  std::string boundary_name;                       ///< the layer after which the network is cut
  uint16_t boundary = 0;                           ///< its number, counted from 0 at the input
  Direction direction = Direction::activation;     ///< of the channel
  std::shared_ptr<const Link> link;                ///< that training with compression uses
  int diagnostics = 0;                             ///< measure the messages of every n-th step; 0 = none
  std::shared_ptr<IndexMemory> indices = nullptr;  ///< of this endpoint's side, where gradients reuse indices
};

/// The links that a channel uses besides the trained one, the same at both endpoints. Integers always cross by
/// that one.
struct OtherLinks {
  /// Makes both for a channel.
  explicit OtherLinks(const ChannelSpec& spec);
  std::shared_ptr<const Link> uncompressed;  ///< for messages that cross as they are
  std::shared_ptr<const Link> bare;          ///< the link's codec without feedback
};

/// A message as it was before it was encoded or after it was decoded, to try other codecs on.
struct KeptMessage {
  at::Tensor tensor;       ///< memory of its own
  MessageContext context;  ///< without samples and classes
};

/// The sending endpoint of a channel: turns tensors into sealed frames.
class Sender {
 public:
  /// The encoder is an endpoint of the spec's link, made by it.
  Sender(ChannelSpec spec, std::unique_ptr<Encoder> encoder);

  /// With a new encoder of the spec's link.
  explicit Sender(const ChannelSpec& spec) : Sender(spec, spec.link->make_encoder()) {}

  /// Encodes the next message. `context` needs no boundary, direction and device. Throws NumericError that
  /// names boundary, direction, micro-batch and step; no state has changed then.
  ///
  /// `there` takes the payload, uint8 of one dimension on the device of `x`, where it can stay there: of exact
  /// size, from a codec that writes it there. The frame is then without it. Null: all of it is in the frame.
  Buffer encode(const at::Tensor& x, MessageContext context, MessageMode mode,
                FrameCheck check = FrameCheck::verify, at::Tensor* there = nullptr);

  /// Whether the next message, of this context and mode, needs MessageContext::previous.
  bool needs_previous(MessageContext context, MessageMode mode) const;

  /// Says which samples the batch after the next one has.
  void prefetch(std::span<const int64_t> ids) { encoder_->prefetch(ids); }

  /// The encoder's state, for saving and loading.
  void visit_state(StateVisitor& visitor) { encoder_->visit_state(visitor); }

  /// The link of the channel.
  const Link& link() const { return *spec_.link; }

  /// From now on messages go through `link`, as at the receiver. Neither it nor the one before may keep state.
  void set_link(std::shared_ptr<const Link> link);

  /// Keeps messages until take_kept(), as they are before they are encoded; see MessageMode::is_kept().
  void keep_messages() { keeps_ = true; }

  /// Those kept since keep_messages(), in order; no more are.
  std::vector<KeptMessage> take_kept();

  /// What was measured since the last reset; nothing unless the spec asks for it.
  std::optional<Diagnostics> diagnostics() const { return diagnostics_.measured(); }

  /// Begins the measurement again.
  void reset_diagnostics() { diagnostics_.reset(); }

  /// messages, raw_bytes, wire_bytes and encode_seconds since the last call.
  Traffic take_traffic();

 private:
  MessageReport encode_payload(const at::Tensor& x, const MessageContext& context, MessageMode mode,
                               ByteWriter& out);

  ChannelSpec spec_;
  OtherLinks others_;
  std::unique_ptr<Encoder> encoder_;
  std::unique_ptr<Encoder> uncompressed_;
  std::unique_ptr<Encoder> bare_;
  uint64_t sequence_ = 0;
  bool has_begun_ = false;  ///< with messages of training that move the link's state
  Traffic traffic_;
  DiagnosticsRecorder diagnostics_;
  bool keeps_ = false;
  std::vector<KeptMessage> kept_;
};

/// The receiving endpoint of a channel: checks frames and turns them into tensors.
class Receiver {
 public:
  /// The decoder is an endpoint of the spec's link, made by it.
  Receiver(ChannelSpec spec, std::unique_ptr<Decoder> decoder);

  /// With a new decoder of the spec's link.
  explicit Receiver(const ChannelSpec& spec) : Receiver(spec, spec.link->make_decoder()) {}

  /// Bytes of the largest frame that a message of this shape can have in any mode.
  size_t frame_bound(const MessageMeta& meta) const;

  /// The same in one mode; `exact` where every message has that many.
  PayloadSize frame_size(const MessageMeta& meta, MessageMode mode) const;

  /// Bytes of the payload of a frame, where it has stayed on a device (Sender::encode()); else 0. `context` is
  /// that of decode().
  size_t bytes_there(const Buffer& frame, const MessageMeta& meta, MessageContext context,
                     MessageMode mode) const;

  /// Decodes the next message; the tensor may use the frame's memory. Throws WireError that names boundary
  /// and direction, and NumericError that does where the link's state cannot hold what is decoded.
  ///
  /// `there` is the payload of a frame that is without it (bytes_there()), on the context's device; else null.
  at::Tensor decode(Buffer frame, const MessageMeta& meta, MessageContext context, MessageMode mode,
                    FrameCheck check = FrameCheck::verify, at::Tensor* there = nullptr);

  /// Says which samples the batch after the next one has.
  void prefetch(std::span<const int64_t> ids) { decoder_->prefetch(ids); }

  /// The decoder's state, for saving and loading.
  void visit_state(StateVisitor& visitor) { decoder_->visit_state(visitor); }

  /// The link of the channel.
  const Link& link() const { return *spec_.link; }

  /// See Sender::set_link().
  void set_link(std::shared_ptr<const Link> link);

  /// Keeps messages until take_kept(), as they are decoded; see MessageMode::is_kept().
  void keep_messages() { keeps_ = true; }

  /// See Sender::take_kept().
  std::vector<KeptMessage> take_kept();

  /// decode_seconds since the last call.
  Traffic take_traffic();

 private:
  void count_decoding();

  ChannelSpec spec_;
  OtherLinks others_;
  std::unique_ptr<Decoder> decoder_;
  std::unique_ptr<Decoder> uncompressed_;
  std::unique_ptr<Decoder> bare_;
  uint64_t sequence_ = 0;
  bool has_begun_ = false;  ///< with messages of training that move the link's state
  Traffic traffic_;
  /// Of the last message of training: counted with the next, by when a device is through with it.
  std::optional<std::pair<DeviceMoment, DeviceMoment>> decoding_;
  bool keeps_ = false;
  std::vector<KeptMessage> kept_;
};

}  // namespace strait
