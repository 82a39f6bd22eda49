#pragma once

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "strait/codecs/codec.h"
#include "strait/links/options.h"

namespace strait {

/// What an encoder reports of a message of training besides its bytes, where the context wants it.
struct MessageReport {
  IndexSet indices;     ///< of the elements that are sent, of a link whose messages are the codec's
  at::Tensor received;  ///< what the receiver will see
  at::Tensor residual;  ///< with it: what the state holds back for later messages; undefined where it does not
};

/// Walks the tensors that an endpoint of a link carries from message to message. One listing serves saving and
/// loading: a saving visitor reads `value`, a loading one replaces it, or writes into its memory where it has
/// the right shape and type. A tensor that is not defined is not saved, and one that was not saved stays.
class StateVisitor {
 public:
  virtual ~StateVisitor() = default;

  /// Visits one tensor; `name` is unique in the endpoint.
  virtual void tensor(std::string_view name, at::Tensor& value) = 0;
};

/// Puts a prefix and a dot before every name.
class PrefixedVisitor : public StateVisitor {
 public:
  /// Visits `visitor`, which must outlive it, with names `prefix.NAME`.
  PrefixedVisitor(std::string prefix, StateVisitor& visitor) : prefix_(std::move(prefix)), visitor_(visitor) {}
  void tensor(std::string_view name, at::Tensor& value) override {
    visitor_.tensor(fmt::format("{}.{}", prefix_, name), value);
  }

 private:
  std::string prefix_;
  StateVisitor& visitor_;
};

/// The sending endpoint of a link over one direction of one boundary. Not thread-safe: messages have an order.
class Encoder {
 public:
  virtual ~Encoder() = default;

  /// Writes the next message of training and updates the state. Throws NumericError for a message that cannot
  /// be sent; the state has the bits then that it had.
  virtual MessageReport encode(const at::Tensor& x, const MessageContext& context, ByteWriter& out) = 0;

  /// Writes a message with the state as it is and leaves it so; for evaluation. Its samples are none of the
  /// training set.
  virtual void encode_frozen(const at::Tensor& x, const MessageContext& context, ByteWriter& out) const = 0;

  /// Whether the next message, of this context, needs MessageContext::previous; of evaluation too.
  virtual bool needs_previous(const MessageContext& /*context*/) const { return false; }

  /// Hears of a message of training that crosses without compression, before this endpoint's first message.
  /// Throws as encode().
  virtual void observe(const at::Tensor& /*x*/, const MessageContext& /*context*/) {}

  /// Says which samples the message after the next one will be of, for an endpoint that keeps something
  /// per sample and may have to fetch it.
  virtual void prefetch(std::span<const int64_t> /*ids*/) {}

  /// Shows the state; an endpoint without state shows none.
  virtual void visit_state(StateVisitor& /*visitor*/) {}
};

/// The receiving endpoint. No tensor it returns shares memory with its state.
class Decoder {
 public:
  virtual ~Decoder() = default;

  /// Reads the next message of training and updates the state. Throws WireError for bytes that the encoder
  /// cannot have written; the state is undefined then.
  virtual Decoded decode(ByteReader& in, const MessageMeta& meta, const MessageContext& context) = 0;

  /// Reads what encode_frozen() wrote, with the state as it is. Throws WireError.
  virtual at::Tensor decode_frozen(ByteReader& in, const MessageMeta& meta,
                                   const MessageContext& context) const = 0;

  /// Hears of a message of training that crosses without compression, as the encoder does.
  virtual void observe(const at::Tensor& /*x*/, const MessageContext& /*context*/) {}

  /// Says which samples the message after the next one will be of.
  virtual void prefetch(std::span<const int64_t> /*ids*/) {}

  /// Shows the state; an endpoint without state shows none.
  virtual void visit_state(StateVisitor& /*visitor*/) {}
};

/// The two endpoints of a link.
struct LinkEnds {
  std::unique_ptr<Encoder> encoder;  ///< the sender's
  std::unique_ptr<Decoder> decoder;  ///< the receiver's
};

/// What the receiver of a codec's message sees of a tensor, such as Codec::reconstruct().
using ApplyCodec = std::function<at::Tensor(const Codec& codec, const at::Tensor& x, const MessageContext&)>;

/// What the receiver sees of each of a sequence of messages.
using MessageOperator = std::function<at::Tensor(const at::Tensor& x, const MessageContext& context)>;

/// A feedback scheme around a codec: makes the two endpoints, which share the codec. Immutable once it is
/// shared.
class Link {
 public:
  /// `id` is that of link_list.def, from kFirstOwnId on for any other link.
  Link(uint16_t id, std::shared_ptr<const Codec> codec) : codec_(std::move(codec)), id_(id) {}
  virtual ~Link() = default;

  /// The number in the frame header.
  uint16_t id() const { return id_; }

  /// The feedback spec that it was made of, without what says where a store lies: with the codec's what both
  /// endpoints must have alike. Empty for a link that make_link() has not made.
  const std::string& spec() const { return spec_; }

  /// See spec(); for who makes links of specs, before anybody shares it.
  void set_spec(std::string spec) { spec_ = std::move(spec); }

  /// The codec inside.
  const Codec& codec() const { return *codec_; }

  /// The same, to keep.
  const std::shared_ptr<const Codec>& shared_codec() const { return codec_; }

  /// What a piece of the state serves; none for a link without state.
  virtual Slots slots() const { return Slots::none; }

  /// The store in which it keeps a buffer per sample; null where it has none.
  virtual const StoreOptions* store() const { return nullptr; }

  /// Whether messages are integers, int64, which have no gradient, and not float32.
  virtual bool carries_integers() const { return false; }

  /// Whether it serves gradients too, not activations alone.
  virtual bool serves_gradients() const { return true; }

  /// Whether it serves gradients of weights, which are of no sample and no class.
  bool serves_weights() const { return slots() == Slots::none || slots() == Slots::rows; }

  /// Whether its messages need MessageContext::previous (Encoder::needs_previous() says which). Only a training
  /// has that, of the gradients that its replicas exchange.
  virtual bool needs_previous() const { return false; }

  /// Whether an endpoint carries something from message to message.
  bool keeps_state() const { return slots() != Slots::none || codec_->warm_start() != nullptr; }

  /// The same feedback around a compressor that has state of its own; null where it cannot go around that one.
  virtual std::shared_ptr<Link> around(std::shared_ptr<const Link> compressor) const;

  /// Whether a batch may be cut into several messages: state of rows then goes with a codec that treats every
  /// row by itself. That of classes changes with every message.
  bool allows_micro_batches() const {
    return slots() != Slots::classes && (slots() != Slots::rows || codec_->is_row_wise());
  }

  /// Whether a message is one message of the codec and nothing else: what it keeps is then what the codec
  /// keeps.
  virtual bool sends_codec_messages() const { return true; }

  /// Whether a gradient is sent at the indices of its activations (MessageContext::indices).
  virtual bool reuses_indices() const { return false; }

  /// The shapes of the index sets in a message; none where the codec sends none. Where the link
  /// keeps something per sample, in one of samples that it knows.
  virtual std::vector<SparseShape> index_sets(const MessageMeta& meta) const;

  /// Bytes that a message needs at most.
  virtual PayloadSize payload_size(const MessageMeta& meta) const { return codec_->payload_size(meta); }

  /// A new encoder with its state at the start.
  virtual std::unique_ptr<Encoder> make_encoder() const = 0;

  /// A new decoder with its state at the start.
  virtual std::unique_ptr<Decoder> make_decoder() const = 0;

  /// Both endpoints for one process, where every message is decoded before another of the same rows or samples
  /// is encoded. They may share state and give the same bits as separate ones.
  virtual LinkEnds make_ends() const { return {make_encoder(), make_decoder()}; }

  /// The scheme by its definition (docs/operators.md, "Feedback") in plain tensor operations, both endpoints in
  /// one: what the link is checked against, and what its speed is compared with. `apply` stands for the codec.
  /// Each call is the next message; all have the same shape and, where slots() says so, the same samples. A
  /// copy continues by itself from where it was taken. Empty for a link that has no such form.
  virtual MessageOperator reference(ApplyCodec apply) const;

 private:
  std::shared_ptr<const Codec> codec_;
  uint16_t id_;
  std::string spec_;
};

/// The receiving endpoint of links whose receiver sees what the codec decodes.
std::unique_ptr<Decoder> make_plain_decoder(std::shared_ptr<const Codec> codec);

/// One row of link_list.def.
struct LinkInfo {
  uint16_t id;            ///< in the frame header
  std::string_view name;  ///< before the colon of a spec
  std::unique_ptr<Link> (*factory)(uint16_t id, std::shared_ptr<const Codec> codec,
                                   OperatorSpec spec);  ///< throws InputError
  std::string_view parameters;                          ///< of a spec, behind the name
  std::vector<std::string_view> samples;                ///< the specs that suites run
};

/// The feedback schemes that make_link() knows, in the order of link_list.def. docs/paper_to_code.md says which
/// scheme of the paper each is.
const std::vector<LinkInfo>& link_list();

/// Their names.
std::vector<std::string> link_names();

/// Their names and parameters, such as `ef[:beta]`.
std::vector<std::string> link_forms();

/// The samples of all of them.
std::vector<std::string> link_samples();

/// Makes the link of a feedback spec around a codec: `ef21`, or `aq-sgd,format=bf16`. A link with a store
/// (Link::store()) takes from `store` what its spec leaves open; no other sees it. Throws InputError with the
/// nearest right name for a misspelt one, for an option that the link does not have, and for a codec that it
/// cannot serve.
std::shared_ptr<const Link> make_link(std::shared_ptr<const Codec> codec,
                                      std::string_view feedback = kNoFeedback, const StoreOptions& store = {});

/// The same around the codec of a spec: make_link("topk:0.1", "ef21"). Throws as make_codec() besides.
std::shared_ptr<const Link> make_link(std::string_view codec, std::string_view feedback = kNoFeedback,
                                      const StoreOptions& store = {});

/// Makes the link of a feedback spec around a compressor that has state of its own, such as a low-rank basis at
/// both endpoints, and is a link around a codec itself. A message is one of the compressor's, whose state keeps
/// the names that it has, other ones than the feedback's. It has moved where the feedback itself then throws
/// NumericError. Throws InputError besides for feedback that cannot go around it: `ef-mixed` cuts a codec in
/// two, and `aq-sgd`, whose rows are others every time, around one that keeps something per row; and for a
/// compressor that keeps samples or reuses indices.
std::shared_ptr<const Link> make_link(const std::shared_ptr<const Link>& compressor, std::string_view feedback);

/// Throws InputError `PLACE: ...` for a link with needs_previous(), where there are no weights of a step
/// before.
void expect_no_previous(std::string_view place, const Link& link);

/// A codec that every link can serve, for those who ask a link for what it does with any.
std::shared_ptr<const Codec> codec_for_any_link();

/// Throws InputError for a text that is no feedback spec, whatever the codec.
void check_feedback(std::string_view feedback);

/// Makes the link that sends values at the indices in MessageContext::indices (index reuse). Throws
/// InputError for a codec that does not select.
std::shared_ptr<const Link> make_reuse_link(std::shared_ptr<const Codec> codec);

}  // namespace strait
