#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "strait/codecs/codec.h"

namespace strait {

/// Walks the tensors that a half of a link carries from message to message. One listing serves saving and
/// loading: a saving visitor reads `value`, a loading one replaces it, or writes into its memory where it has
/// the right shape and type. A tensor that is not defined is not saved, and one that was not saved stays.
class StateVisitor {
 public:
  virtual ~StateVisitor() = default;
  virtual void tensor(std::string_view name, at::Tensor& value) = 0;
};

/// The sending half of a link over one direction of one boundary. Not thread-safe: messages have an order.
class Encoder {
 public:
  virtual ~Encoder() = default;

  /// Writes the next message of training and moves the state on. When it throws, the state is unchanged.
  virtual void encode(const at::Tensor& x, const MessageContext& context, ByteWriter& out) = 0;

  /// Writes a message with the state as it is and leaves it so; for evaluation.
  virtual void encode_frozen(const at::Tensor& x, const MessageContext& context, ByteWriter& out) const = 0;

  virtual void visit_state(StateVisitor& /*visitor*/) {}
};

/// The receiving half. No tensor it returns shares memory with its state.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual at::Tensor decode(ByteReader& in, const MessageMeta& meta, const MessageContext& context) = 0;
  virtual at::Tensor decode_frozen(ByteReader& in, const MessageMeta& meta,
                                   const MessageContext& context) const = 0;
  virtual void visit_state(StateVisitor& /*visitor*/) {}
};

/// A feedback scheme around a codec: makes the two halves, which share the codec. Immutable.
class Link {
 public:
  explicit Link(std::shared_ptr<const Codec> codec) : codec_(std::move(codec)) {}
  virtual ~Link() = default;

  /// The number in the frame header (link_list.def).
  uint16_t id() const { return id_; }
  const Codec& codec() const { return *codec_; }

  /// Bytes that a message needs at most.
  virtual PayloadSize payload_size(const MessageMeta& meta) const { return codec_->payload_size(meta); }
  virtual std::unique_ptr<Encoder> make_encoder() const = 0;
  virtual std::unique_ptr<Decoder> make_decoder() const = 0;

 protected:
  const std::shared_ptr<const Codec>& shared_codec() const { return codec_; }

 private:
  friend std::shared_ptr<const Link> make_link(std::string_view, std::shared_ptr<const Codec>);
  std::shared_ptr<const Codec> codec_;
  uint16_t id_ = 0;
};

/// The receiving half of links whose receiver sees what the codec decodes.
std::unique_ptr<Decoder> make_plain_decoder(std::shared_ptr<const Codec> codec);

/// The names that make_link() knows, in the order of link_list.def.
std::vector<std::string> link_names();

/// Makes the link of a feedback name. Throws InputError with the nearest right name for a misspelt one.
std::shared_ptr<const Link> make_link(std::string_view feedback, std::shared_ptr<const Codec> codec);

}  // namespace strait
