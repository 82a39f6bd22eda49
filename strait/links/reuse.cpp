#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>

#include "strait/base/error.h"
#include "strait/codecs/sparsifier.h"
#include "strait/kernels/copy.h"
#include "strait/links/link.h"

namespace strait {
namespace {

/// Values at indices that both endpoints know from another message (MessageContext::indices).
class ReuseFormat {
 public:
  explicit ReuseFormat(std::shared_ptr<const Codec> codec)
      : codec_(std::move(codec)), sparsifier_(codec_->sparsifier()) {}

  PayloadSize payload_size(const MessageMeta& meta) const {
    return {meta.elements() == 0 ? 0 : sparsifier_->values().values_size(sparsifier_->shape_of(meta)), true};
  }
  void write(const at::Tensor& x, const MessageContext& context, ByteWriter& out) const {
    const at::Tensor dense = x.to(at::kCPU).contiguous();
    if (x.numel() == 0) return;
    const std::span<const float> elements(dense.data_ptr<float>(), static_cast<size_t>(x.numel()));
    // Those that are not kept too, which nobody would hear of.
    if (!kernels::all_finite(elements)) throw NumericError("tensor has a value that is not finite");
    sparsifier_->values().write_values(elements, indices_of(meta_of(x), context), context, out);
  }
  at::Tensor read(ByteReader& in, const MessageMeta& meta, const MessageContext& context) const {
    at::Tensor out = at::empty(meta.shape, at::kFloat);
    if (out.numel() > 0) {
      sparsifier_->values().read_values(in, indices_of(meta, context), context,
                                        {out.data_ptr<float>(), meta.elements()});
    }
    if (in.left() != 0) throw WireError("{} bytes follow the values", in.left());
    return out.to(context.device);
  }

 private:
  const IndexSet& indices_of(const MessageMeta& meta, const MessageContext& context) const {
    STRAIT_CHECK(context.indices != nullptr && context.indices->shape == sparsifier_->shape_of(meta),
                 "no positions are known for a message that reuses them");
    return *context.indices;
  }

  std::shared_ptr<const Codec> codec_;
  const Sparsifier* sparsifier_;
};

class ReuseEncoder : public Encoder {
 public:
  explicit ReuseEncoder(ReuseFormat format) : format_(std::move(format)) {}

  MessageReport encode(const at::Tensor& x, const MessageContext& context, ByteWriter& out) override {
    ByteWriter part(out.rest());
    format_.write(x, context, part);
    ByteReader in(out.claim(part.used()));
    return {{}, context.wants_received ? format_.read(in, meta_of(x), context) : at::Tensor(), {}};
  }
  void encode_frozen(const at::Tensor& x, const MessageContext& context, ByteWriter& out) const override {
    format_.write(x, context, out);
  }

 private:
  ReuseFormat format_;
};

class ReuseDecoder : public Decoder {
 public:
  explicit ReuseDecoder(ReuseFormat format) : format_(std::move(format)) {}

  Decoded decode(ByteReader& in, const MessageMeta& meta, const MessageContext& context) override {
    return {format_.read(in, meta, context), {}};
  }
  at::Tensor decode_frozen(ByteReader& in, const MessageMeta& meta,
                           const MessageContext& context) const override {
    return format_.read(in, meta, context);
  }

 private:
  ReuseFormat format_;
};

/// Index reuse (paper, section 3.2; docs/operators.md): a gradient is sent at the indices that its
/// micro-batch's activations kept, and its message holds values only.
class Reuse : public Link {
 public:
  Reuse(uint16_t id, const std::shared_ptr<const Codec>& codec) : Link(id, codec), format_(codec) {}

  bool sends_codec_messages() const override { return false; }
  bool reuses_indices() const override { return true; }
  std::vector<SparseShape> index_sets(const MessageMeta& /*meta*/) const override { return {}; }
  PayloadSize payload_size(const MessageMeta& meta) const override { return format_.payload_size(meta); }
  std::unique_ptr<Encoder> make_encoder() const override { return std::make_unique<ReuseEncoder>(format_); }
  std::unique_ptr<Decoder> make_decoder() const override { return std::make_unique<ReuseDecoder>(format_); }

 private:
  ReuseFormat format_;
};

}  // namespace

std::unique_ptr<Link> make_reuse(uint16_t id, std::shared_ptr<const Codec> codec, OperatorSpec spec) {
  spec.finish();
  if (codec->sparsifier() == nullptr) {
    throw InputError("index reuse needs a codec that selects, such as topk:0.1, not \"{}\"", codec->spec());
  }
  return std::make_unique<Reuse>(id, codec);
}

}  // namespace strait
