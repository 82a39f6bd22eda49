#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>

#include "strait/links/sample_store.h"
#include "strait/links/slot_state.h"

namespace strait {
namespace {

/// The rows of a message by whether their samples have a buffer.
class Visits {
 public:
  Visits(const SampleStore& store, const MessageMeta& meta, const MessageContext& context) : meta_(meta) {
    STRAIT_CHECK(context.ids.size() == meta.rows(), "aq-sgd needs the ids of {} samples, got {}", meta.rows(),
                 context.ids.size());
    for (size_t row = 0; row < context.ids.size(); ++row) {
      (store.has(context.ids[row]) ? later : first).add(context.ids[row], static_cast<int64_t>(row));
    }
  }

  struct Part {
    std::vector<int64_t> ids;
    std::vector<int64_t> rows;

    void add(int64_t id, int64_t row) {
      ids.push_back(id);
      rows.push_back(row);
    }
    /// The part's rows of the whole message, without a copy where they are all of it.
    at::Tensor of(const at::Tensor& whole) const {
      if (static_cast<int64_t>(rows.size()) == whole.size(0)) return whole;
      return whole.index_select(0, index().to(whole.device()));
    }
    /// Puts the part's rows where they stand in the whole.
    void place(const at::Tensor& part, at::Tensor& whole) const {
      if (static_cast<int64_t>(rows.size()) == whole.size(0)) {
        whole = part;
      } else if (!rows.empty()) {
        whole.index_copy_(0, index().to(whole.device()), part);
      }
    }

   private:
    at::Tensor index() const {
      return at::from_blob(const_cast<int64_t*>(rows.data()), {static_cast<int64_t>(rows.size())}, at::kLong);
    }
  };

  MessageMeta meta_of(const Part& part) const {
    MessageMeta meta = meta_;
    meta.shape.front() = static_cast<int64_t>(part.rows.size());
    return meta;
  }
  at::Tensor join(const at::Tensor& first_rows, const at::Tensor& later_rows) const {
    at::Tensor whole = at::empty(meta_.shape, first_rows.options());
    first.place(first_rows, whole);
    later.place(later_rows, whole);
    return whole;
  }

  Part first;
  Part later;

 private:
  MessageMeta meta_;
};

/// What both endpoints do with a message: the rows of first visits cross in full, then the compressor's payload
/// of the others' differences from their buffers, where there are any.
struct AqSgdFormat {
  std::shared_ptr<const Codec> raw = make_codec(kUncompressed);
  std::shared_ptr<const Link> compressor;
  bool fills_early = false;  ///< buffers hold the last message of the warm-up

  PayloadSize payload_size(const MessageMeta& meta) const {
    return {raw->payload_size(meta).bound + compressor->payload_size(meta).bound, false};
  }
};

class AqSgdEncoder : public Encoder {
 public:
  /// Without `updates` the other endpoint, which shares the store, updates it.
  AqSgdEncoder(AqSgdFormat format, std::shared_ptr<SampleStore> store, bool updates)
      : format_(std::move(format)),
        compressor_(format_.compressor->make_encoder()),
        store_(std::move(store)),
        updates_(updates) {}

  void observe(const at::Tensor& x, const MessageContext& context) override {
    compressor_->observe(x, context);
    if (updates_ && format_.fills_early) store_->write(context.ids, x);
  }

  MessageReport encode(const at::Tensor& x, const MessageContext& context, ByteWriter& out) override {
    const Visits visits(*store_, meta_of(x), context);
    const at::Tensor first = visits.first.of(x);
    format_.raw->write(first, context, out);
    if (visits.later.rows.empty()) {
      if (updates_) store_->write(context.ids, x);
      return {{}, x, {}};
    }
    const at::Tensor buffers = store_->read(visits.later.ids, visits.meta_of(visits.later), context.device);
    MessageContext wanted = context;
    wanted.wants_received = updates_ || context.wants_received;
    wanted.wants_indices = false;
    const MessageReport report = compressor_->encode(visits.later.of(x).sub(buffers), wanted, out);
    if (!wanted.wants_received) return {};
    const at::Tensor received = visits.join(first, buffers.add(report.received));
    if (updates_) store_->write(context.ids, received);
    return {{}, received, {}};
  }
  /// A test sample has no buffer: every visit is a first one.
  void encode_frozen(const at::Tensor& x, const MessageContext& context, ByteWriter& out) const override {
    format_.raw->write(x, context, out);
  }
  void prefetch(std::span<const int64_t> ids) override {
    if (updates_) store_->prefetch(ids);
  }
  void visit_state(StateVisitor& visitor) override {
    if (updates_) store_->visit(visitor);
    compressor_->visit_state(visitor);
  }

 private:
  AqSgdFormat format_;
  std::unique_ptr<Encoder> compressor_;
  std::shared_ptr<SampleStore> store_;
  bool updates_;
};

class AqSgdDecoder : public Decoder {
 public:
  AqSgdDecoder(AqSgdFormat format, std::shared_ptr<SampleStore> store)
      : format_(std::move(format)), compressor_(format_.compressor->make_decoder()), store_(std::move(store)) {}

  void observe(const at::Tensor& x, const MessageContext& context) override {
    compressor_->observe(x, context);
    if (format_.fills_early) store_->write(context.ids, x);
  }

  Decoded decode(ByteReader& in, const MessageMeta& meta, const MessageContext& context) override {
    const Visits visits(*store_, meta, context);
    const MessageMeta first_meta = visits.meta_of(visits.first);
    ByteReader full(in.take(format_.raw->payload_size(first_meta).bound), in.owner());
    at::Tensor received = format_.raw->read(full, first_meta, context).tensor;
    if (visits.later.rows.empty()) {
      if (in.left() != 0) throw WireError("{} bytes follow the samples that come in full", in.left());
    } else {
      const MessageMeta later_meta = visits.meta_of(visits.later);
      const at::Tensor difference = compressor_->decode(in, later_meta, context).tensor;
      received =
          visits.join(received, store_->read(visits.later.ids, later_meta, context.device).add(difference));
    }
    store_->write(context.ids, received);
    return {received, {}};
  }
  at::Tensor decode_frozen(ByteReader& in, const MessageMeta& meta,
                           const MessageContext& context) const override {
    return format_.raw->read(in, meta, context).tensor;
  }
  void prefetch(std::span<const int64_t> ids) override { store_->prefetch(ids); }
  void visit_state(StateVisitor& visitor) override {
    store_->visit(visitor);
    compressor_->visit_state(visitor);
  }

 private:
  AqSgdFormat format_;
  std::unique_ptr<Decoder> compressor_;
  std::shared_ptr<SampleStore> store_;
};

/// AQ-SGD (Wang et al. 2022; docs/operators.md, "Feedback"): the receiver sees a sample's buffer moved on by
/// the message; the buffer keeps what was seen, rounded to the store's format.
class AqSgd : public Link {
 public:
  AqSgd(uint16_t id, std::shared_ptr<const Link> compressor, StoreOptions store)
      : Link(id, compressor->shared_codec()),
        format_{.compressor = std::move(compressor), .fills_early = store.fills_early()},
        options_(std::move(store)) {}

  Slots slots() const override { return Slots::samples; }
  const StoreOptions* store() const override { return &options_; }
  bool serves_gradients() const override { return false; }
  /// None that keeps something per row: the rows of a message are samples here, other ones every time.
  std::shared_ptr<Link> around(std::shared_ptr<const Link> compressor) const override {
    if (compressor->slots() != Slots::none) return nullptr;
    return std::make_shared<AqSgd>(id(), std::move(compressor), options_);
  }
  bool sends_codec_messages() const override { return false; }
  PayloadSize payload_size(const MessageMeta& meta) const override { return format_.payload_size(meta); }
  std::unique_ptr<Encoder> make_encoder() const override {
    return std::make_unique<AqSgdEncoder>(format_, std::make_shared<SampleStore>(options_), true);
  }
  std::unique_ptr<Decoder> make_decoder() const override {
    return std::make_unique<AqSgdDecoder>(format_, std::make_shared<SampleStore>(options_));
  }
  /// One store for both: the encoder only reads it, the decoder updates it.
  LinkEnds make_ends() const override {
    const auto store = std::make_shared<SampleStore>(options_);
    return {std::make_unique<AqSgdEncoder>(format_, store, false),
            std::make_unique<AqSgdDecoder>(format_, store)};
  }
  MessageOperator reference(ApplyCodec apply) const override {
    auto compress = format_.compressor->reference(std::move(apply));
    if (!compress) return {};
    return [compress = std::move(compress), kept = keeping_of({Slots::samples, options_}),
            buffer = at::Tensor()](const at::Tensor& x, const MessageContext& context) mutable {
      at::Tensor received = buffer.defined() ? buffer.add(compress(x.sub(buffer), context)) : x;
      buffer = kept(received, context);
      return received;
    };
  }

 private:
  AqSgdFormat format_;
  StoreOptions options_;
};

}  // namespace

std::unique_ptr<Link> make_aq_sgd(uint16_t id, std::shared_ptr<const Codec> codec, OperatorSpec spec) {
  StoreOptions store = read_store_options(spec, true);
  spec.finish();
  return std::make_unique<AqSgd>(id, make_link(std::move(codec)), std::move(store));
}

}  // namespace strait
