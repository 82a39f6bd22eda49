#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>

#include "strait/codecs/selective.h"
#include "strait/links/link.h"

namespace strait {
namespace {

/// Values at positions that both ends know from another message (MessageContext::kept).
class ReuseFormat {
 public:
  explicit ReuseFormat(std::shared_ptr<const Codec> codec)
      : codec_(std::move(codec)), selective_(codec_->selective()) {}

  PayloadSize payload_size(const MessageMeta& meta) const {
    return {meta.elements() == 0 ? 0 : selective_->format().values_size(selective_->shape_of(meta)), true};
  }
  void write(const at::Tensor& x, const MessageContext& context, ByteWriter& out) const {
    const at::Tensor dense = x.to(at::kCPU).contiguous();
    if (x.numel() == 0) return;
    selective_->format().write_values({dense.data_ptr<float>(), static_cast<size_t>(x.numel())},
                                      kept(meta_of(x), context), out);
  }
  at::Tensor read(ByteReader& in, const MessageMeta& meta, const MessageContext& context) const {
    at::Tensor out = at::empty(meta.shape, at::kFloat);
    if (out.numel() > 0) {
      selective_->format().read_values(in, kept(meta, context), {out.data_ptr<float>(), meta.elements()});
    }
    if (in.left() != 0) throw WireError("{} bytes follow the values", in.left());
    return out;
  }

 private:
  const IndexSet& kept(const MessageMeta& meta, const MessageContext& context) const {
    STRAIT_CHECK(context.kept != nullptr && context.kept->shape == selective_->shape_of(meta),
                 "no positions are known for a message that reuses them");
    return *context.kept;
  }

  std::shared_ptr<const Codec> codec_;
  const Selective* selective_;
};

class ReuseEncoder : public Encoder {
 public:
  explicit ReuseEncoder(ReuseFormat format) : format_(std::move(format)) {}

  void encode(const at::Tensor& x, const MessageContext& context, ByteWriter& out) override {
    encode_frozen(x, context, out);
  }
  void encode_frozen(const at::Tensor& x, const MessageContext& context, ByteWriter& out) const override {
    ByteWriter part(out.rest());
    format_.write(x, context, part);
    ByteReader in(out.claim(part.used()));
    if (context.trace != nullptr) context.trace->received = format_.read(in, meta_of(x), context);
  }

 private:
  ReuseFormat format_;
};

class ReuseDecoder : public Decoder {
 public:
  explicit ReuseDecoder(ReuseFormat format) : format_(std::move(format)) {}

  at::Tensor decode(ByteReader& in, const MessageMeta& meta, const MessageContext& context) override {
    return format_.read(in, meta, context);
  }
  at::Tensor decode_frozen(ByteReader& in, const MessageMeta& meta,
                           const MessageContext& context) const override {
    return format_.read(in, meta, context);
  }

 private:
  ReuseFormat format_;
};

/// Index reuse (paper, section 3.2; docs/operators.md): a gradient keeps the positions that its micro-batch's
/// activations kept, and its message holds values only.
class Reuse : public Link {
 public:
  explicit Reuse(const std::shared_ptr<const Codec>& codec) : Link(codec), format_(codec) {}

  bool sends_codec_messages() const override { return false; }
  std::vector<SparseShape> index_sets(const MessageMeta& /*meta*/) const override { return {}; }
  PayloadSize payload_size(const MessageMeta& meta) const override { return format_.payload_size(meta); }
  std::unique_ptr<Encoder> make_encoder() const override { return std::make_unique<ReuseEncoder>(format_); }
  std::unique_ptr<Decoder> make_decoder() const override { return std::make_unique<ReuseDecoder>(format_); }

 private:
  ReuseFormat format_;
};

}  // namespace

std::unique_ptr<Link> make_reuse(std::shared_ptr<const Codec> codec, const StoreOptions& /*store*/) {
  if (codec->selective() == nullptr) {
    throw InputError("index reuse needs a codec that selects, such as topk:0.1, not \"{}\"", codec->spec());
  }
  return std::make_unique<Reuse>(codec);
}

}  // namespace strait
