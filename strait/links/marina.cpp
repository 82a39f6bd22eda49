#include <ATen/core/ivalue.h>

#include <algorithm>

#include "strait/base/random.h"
#include "strait/links/slot_feedback.h"
#include "strait/links/step_size.h"

namespace strait {
namespace {

/// A seed of its own among those of the run's draws.
constexpr uint64_t kCoinTag = 0x6d6172696e61;  // "marina"

/// The rule by which both ends know, without a word, which messages cross in full: the first one, and those of
/// steps whose coin says so. All messages of a step have one coin, whoever sends them.
struct Coin {
  float share = 1;

  bool says_full(const MessageContext& context) const {
    return CounterRandom(make_key(kCoinTag, context.seed, context.step)).uniform() < share;
  }
  bool sends_difference(const at::Tensor& estimate, const MessageContext& context) const {
    return estimate.defined() && !says_full(context);
  }
};

/// x - x_before.
at::Tensor difference_of(const at::Tensor& x, const MessageContext& context) {
  STRAIT_CHECK(context.previous != nullptr && context.previous->sizes() == x.sizes(),
               "a message of step {} without the one at the weights before", context.step);
  return x.sub(context.previous->to(x.device()));
}

void expect_shape(const at::Tensor& estimate, const MessageMeta& meta) {
  STRAIT_CHECK(estimate.sizes() == at::IntArrayRef(meta.shape), "the messages of a link changed their shape");
}

/// What the two ends share: the estimate g, and how a message crosses in full. `End` is Encoder or Decoder.
template <class End>
class MarinaEnd : public End {
 public:
  /// The compressor is that of the differences; `full` carries tensors as they are.
  MarinaEnd(std::unique_ptr<End> compressor, std::shared_ptr<const Codec> full, Coin coin)
      : compressor_(std::move(compressor)), full_(std::move(full)), coin_(coin) {}

  /// What follows a message without compression begins anew.
  void observe(const at::Tensor& x, const MessageContext& context) override {
    compressor_->observe(x, context);
    estimate_.reset();
  }
  void visit_state(StateVisitor& visitor) override {
    visitor.tensor("estimate", estimate_);
    compressor_->visit_state(visitor);
  }

 protected:
  /// Whether the next message is a difference.
  bool is_difference(const MessageContext& context) const { return coin_.sends_difference(estimate_, context); }

  std::unique_ptr<End> compressor_;
  std::shared_ptr<const Codec> full_;
  Coin coin_;
  at::Tensor estimate_;  ///< never changed in place, so that a report may have it
};

/// Sends x and sets g = x, or C(x - x_before) and adds to g what comes of it.
class MarinaEncoder : public MarinaEnd<Encoder> {
 public:
  using MarinaEnd::MarinaEnd;

  MessageReport encode(const at::Tensor& x, const MessageContext& context, ByteWriter& out) override {
    if (!is_difference(context)) {
      full_->write(x, context, out);
      estimate_ = x.clone(at::MemoryFormat::Contiguous);
      return {{}, estimate_, {}};
    }
    expect_shape(estimate_, meta_of(x));
    MessageContext wanted = context;
    wanted.wants_received = true;
    const MessageReport report = compressor_->encode(difference_of(x, context), wanted, out);
    const at::Tensor seen = estimate_.to(context.device).add(report.received);
    expect_finite(seen);
    estimate_ = seen;
    return {{}, seen, {}};
  }
  void encode_frozen(const at::Tensor& x, const MessageContext& context, ByteWriter& out) const override {
    if (is_difference(context)) return compressor_->encode_frozen(difference_of(x, context), context, out);
    full_->write(x, context, out);
  }
  bool needs_previous(const MessageContext& context) const override { return is_difference(context); }
};

class MarinaDecoder : public MarinaEnd<Decoder> {
 public:
  using MarinaEnd::MarinaEnd;

  Decoded decode(ByteReader& in, const MessageMeta& meta, const MessageContext& context) override {
    if (is_difference(context)) {
      expect_shape(estimate_, meta);
      estimate_ = estimate_.to(context.device).add(compressor_->decode(in, meta, context).tensor);
      return {estimate_.clone(), {}};
    }
    at::Tensor x = full_->read(in, meta, context).tensor;
    estimate_ = x.clone();
    return {std::move(x), {}};
  }
  at::Tensor decode_frozen(ByteReader& in, const MessageMeta& meta,
                           const MessageContext& context) const override {
    if (!is_difference(context)) return full_->read(in, meta, context).tensor;
    return estimate_.to(context.device).add(compressor_->decode_frozen(in, meta, context));
  }
};

/// MARINA (Gorbunov et al. 2021; docs/operators.md, "Feedback"): both ends hold an estimate g with the same
/// bits, which is x where a coin says so, and else moves by what comes of the compressed difference between the
/// gradients of one batch at two steps' weights. With p = 1 it is plain without compression.
class Marina : public CompressorFeedback {
 public:
  /// Around a codec, or around a compressor with state.
  template <class Compressor>
  Marina(uint16_t id, const std::shared_ptr<const Compressor>& compressor, Coin coin)
      : CompressorFeedback(id, compressor, SlotOptions{}), coin_(coin), full_(make_codec(kUncompressed)) {}
  std::shared_ptr<Link> around(std::shared_ptr<const Link> compressor) const override {
    return std::make_shared<Marina>(id(), compressor, coin_);
  }
  bool needs_previous() const override { return true; }
  bool sends_codec_messages() const override { return false; }
  /// A message may go in full.
  std::vector<SparseShape> index_sets(const MessageMeta& /*meta*/) const override { return {}; }
  PayloadSize payload_size(const MessageMeta& meta) const override {
    const PayloadSize all = full_->payload_size(meta);
    if (coin_.share == 1) return all;
    const PayloadSize difference = compressor().payload_size(meta);
    return {std::max(all.bound, difference.bound),
            all.exact && difference.exact && all.bound == difference.bound};
  }
  std::unique_ptr<Encoder> make_encoder() const override {
    return std::make_unique<MarinaEncoder>(compressor().make_encoder(), full_, coin_);
  }
  std::unique_ptr<Decoder> make_decoder() const override {
    return std::make_unique<MarinaDecoder>(compressor().make_decoder(), full_, coin_);
  }
  LinkEnds make_ends() const override {
    LinkEnds ends = compressor().make_ends();
    return {std::make_unique<MarinaEncoder>(std::move(ends.encoder), full_, coin_),
            std::make_unique<MarinaDecoder>(std::move(ends.decoder), full_, coin_)};
  }
  MessageOperator reference(ApplyCodec apply) const override {
    auto compress = compressor().reference(std::move(apply));
    if (!compress) return {};
    return [compress = std::move(compress), coin = coin_, estimate = at::Tensor()](
               const at::Tensor& x, const MessageContext& context) mutable {
      estimate = coin.sends_difference(estimate, context)
                     ? estimate.add(compress(x.sub(*context.previous), context))
                     : x.clone();
      return estimate;
    };
  }

 private:
  Coin coin_;
  std::shared_ptr<const Codec> full_;
};

}  // namespace

std::unique_ptr<Link> make_marina(uint16_t id, std::shared_ptr<const Codec> codec, OperatorSpec spec) {
  const float share = step_size_argument(spec, "p");
  spec.finish();
  return std::make_unique<Marina>(id, codec, Coin{share});
}

}  // namespace strait
