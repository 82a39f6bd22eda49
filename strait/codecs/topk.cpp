#include <ATen/core/ivalue.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "strait/base/error.h"
#include "strait/codecs/fused_feedback.h"
#include "strait/codecs/groups.h"
#include "strait/codecs/in_blocks.h"
#include "strait/codecs/selecting_codec.h"
#include "strait/kernels/masked.h"
#include "strait/kernels/select.h"

namespace strait {
namespace {

kernels::SelectScratch& own_scratch() {
  thread_local kernels::SelectScratch scratch;
  return scratch;
}

/// The largest elements of each group of n.
class Largest : public SparseSource {
 public:
  Largest(std::span<const float> x, const SparseShape& shape) : x_(x), n_(shape.n), k_(shape.k) {}

  std::span<const float> select(size_t group, std::span<uint64_t> mask) const override {
    return kernels::select_largest(x_.subspan(group * n_, n_), k_, own_scratch(), mask);
  }

 private:
  std::span<const float> x_;
  size_t n_;
  size_t k_;
};

/// The largest of x + residual; what is not sent goes to `left`.
class LargestSums : public SparseSource {
 public:
  LargestSums(const at::Tensor& x, const at::Tensor& residual, at::Tensor& left, const SparseShape& shape)
      : x_(span_of(x)), residual_(span_of(residual)), left_(span_of(left)), shape_(shape) {}

  std::span<const float> select(size_t group, std::span<uint64_t> mask) const override {
    return kernels::select_largest_of_sums(shape_.part(x_, group), shape_.part(residual_, group),
                                           shape_.part(left_, group), shape_.k, own_scratch(), mask);
  }
  bool asks_what_is_sent() const override { return true; }
  void sent(size_t group, std::span<const uint64_t> mask, std::span<const float> values,
            std::span<float> received) const override {
    // Here stand the sums, of which all is left where nothing was sent.
    for (size_t i = 0; i < values.size(); ++i) received[i] = values[i] - received[i];
    kernels::put_masked(received, mask, shape_.part(left_, group));
  }

 private:
  std::span<const float> x_;
  std::span<const float> residual_;
  std::span<float> left_;
  SparseShape shape_;
};

/// The largest of x - estimate, by which the estimate moves as groups are sent. undo() takes that back.
class LargestDifferences : public SparseSource {
 public:
  LargestDifferences(const at::Tensor& x, at::Tensor& estimate, const SparseShape& shape)
      : x_(span_of(x)), estimate_(span_of(estimate)), shape_(shape), log_(own_log()) {
    log_.before.resize(std::max(log_.before.size(), shape.groups * shape.k));
    log_.moved.assign(shape.groups, 0);
  }

  std::span<const float> select(size_t group, std::span<uint64_t> mask) const override {
    return kernels::select_largest_of_differences(shape_.part(x_, group), shape_.part(estimate_, group),
                                                  shape_.k, own_scratch(), mask);
  }
  bool asks_what_is_sent() const override { return true; }
  void sent(size_t group, std::span<const uint64_t> mask, std::span<const float> /*values*/,
            std::span<float> received) const override {
    log_.moved[group] = 1;
    if (!kernels::move_masked(received, mask, shape_.part(estimate_, group), before(group))) {
      throw NumericError("an estimate that feedback keeps is past float32");
    }
  }

  void undo(const IndexSet& indices) const {
    for (size_t group = 0; group < shape_.groups; ++group) {
      if (log_.moved[group] == 0) continue;
      kernels::put_masked(before(group), indices.mask(group), shape_.part(estimate_, group));
    }
  }

 private:
  struct Log {
    std::vector<float> before;   ///< of each group the elements that are sent
    std::vector<uint8_t> moved;  ///< whether the group was
  };
  static Log& own_log() {
    thread_local Log log;
    return log;
  }
  std::span<float> before(size_t group) const {
    return std::span(log_.before).subspan(group * shape_.k, shape_.k);
  }

  std::span<const float> x_;
  std::span<float> estimate_;
  SparseShape shape_;
  Log& log_;
};

/// A whole tensor in groups of n, whose other elements become 0.
class Scattered : public SparseSink {
 public:
  Scattered(std::span<float> out, size_t n) : out_(out), n_(n) {}

  void receive(size_t group, std::span<const uint64_t> mask, std::span<const float> values) const override {
    kernels::scatter_masked(values, mask, out_.subspan(group * n_, n_));
  }

 private:
  std::span<float> out_;
  size_t n_;
};

/// A tensor in groups of n to which the values are added.
class Added : public SparseSink {
 public:
  Added(std::span<float> sum, size_t n) : sum_(sum), n_(n) {}

  void receive(size_t group, std::span<const uint64_t> mask, std::span<const float> values) const override {
    kernels::add_masked(values, mask, sum_.subspan(group * n_, n_));
  }

 private:
  std::span<float> sum_;
  size_t n_;
};

/// The k = ceil(p * n) elements of largest magnitude of each sample, or of the tensor; the others become 0
/// (docs/operators.md, "topk").
class TopK : public Codec, public Sparsifier, public FusedFeedback, public DeviceForm {
 public:
  TopK(CodecIdentity identity, Selection selection, std::shared_ptr<const SparseFormat> format,
       std::optional<Half> half = {})
      : Codec(std::move(identity)), selection_(selection), format_(std::move(format)), half_(half) {}

  at::Tensor reconstruct(const at::Tensor& x, const MessageContext& context) const override {
    if (x.numel() == 0) return x.clone(at::MemoryFormat::Contiguous);
    const SparseShape shape = shape_of(meta_of(x));
    if (shape.k == 0) return at::zeros_like(x, at::MemoryFormat::Contiguous);
    const at::Tensor groups = groups_of(x.contiguous(), shape);
    return format_->reconstruct(groups, kept_of(groups, shape), shape, context).view(x.sizes());
  }

  at::Tensor device_encode(const at::Tensor& x, const MessageContext& /*context*/) const override {
    const SparseShape shape = shape_of(meta_of(x));
    if (shape.k == 0 || !format_->values().has_composed_form()) return {};  // before anything is selected
    const at::Tensor groups = groups_of(x, shape);
    if (shape.k == shape.n) return format_->composed_write(groups, {}, shape).view(-1);
    if (const DeviceKernels* const kernels = kernels_of(x.device())) {
      const SparseParts parts = format_->largest_by(*kernels, groups, shape, {});
      if (parts.values.defined()) return SparseFormat::message_of(parts);
    }
    return SparseFormat::message_of(format_->composed_parts(groups, kept_of(groups, shape), shape));
  }

  at::Tensor device_decode(const at::Tensor& payload, const MessageMeta& meta,
                           const MessageContext& /*context*/) const override {
    const SparseShape shape = shape_of(meta);
    if (shape.k == 0 || !format_->values().has_composed_form()) return {};
    const at::Tensor groups =
        shape.k < shape.n
            ? format_->device_decode(payload, shape)
            : format_->composed_read(payload.view({static_cast<int64_t>(shape.groups), -1}), {}, shape);
    return groups.defined() ? groups.view(meta.shape) : groups;
  }

  const DeviceForm* device_form() const override {
    return format_->values().has_composed_form() ? this : nullptr;
  }
  size_t form_size(const MessageMeta& meta) const override {
    const SparseShape shape = shape_of(meta);
    return shape.k == 0 ? 0 : format_->parts_size(shape);
  }
  IndexSet payload_of_form(std::span<const std::byte> form, const MessageMeta& meta, bool wants_indices,
                           ByteWriter& out) const override {
    IndexSet indices;
    format_->write_parts(form, shape_of(meta), out, wants_indices ? &indices : nullptr);
    return indices;
  }
  IndexSet form_of_payload(ByteReader& in, const MessageMeta& meta, bool wants_indices,
                           std::span<std::byte> form) const override {
    IndexSet indices;
    if (const SparseShape shape = shape_of(meta); shape.k > 0) {
      format_->read_parts(in, shape, form, wants_indices ? &indices : nullptr);
    }
    return indices;
  }

  /// topk, unsorted, of the magnitudes, with gather and scatter: quicker than kthvalue and a mask.
  at::Tensor reference(const at::Tensor& x) const override {
    const SparseShape shape = shape_of(meta_of(x));
    if (shape.k == 0) return at::zeros_like(x);
    const at::Tensor groups = x.reshape({static_cast<int64_t>(shape.groups), static_cast<int64_t>(shape.n)});
    const auto k = static_cast<int64_t>(shape.k);
    const at::Tensor kept = std::get<1>(groups.abs().topk(k, 1, /*largest=*/true, /*sorted=*/false));
    const at::Tensor values = format_->values().reference(groups.gather(1, kept));
    if (!values.defined()) return {};
    return at::zeros_like(groups).scatter_(1, kept, values).view(x.sizes());
  }

  bool is_row_wise() const override { return selection_.per_sample; }

  const Sparsifier* sparsifier() const override { return this; }
  Selection selection() const override { return selection_; }
  const ValueLists& values() const override { return *format_; }
  bool sends_index_sets() const override { return true; }
  const FusedFeedback* fused_feedback(const MessageMeta& meta, const MessageContext& context) const override {
    if (!is_partial(meta)) return nullptr;
    if (context.device.is_cpu()) return this;
    const bool has_kernels = kernels_of(context.device) != nullptr && format_->values().plain().has_value() &&
                             shape_of(meta).n <= DeviceKernels::kMostElements;
    return has_kernels && goes_there(meta, context) ? &by_kernels_ : nullptr;
  }
  std::shared_ptr<const Codec> half(Half half) const override {
    return std::make_shared<TopK>(CodecIdentity{id(), spec()}, selection_, format_, half);
  }
  IndexSet write_indexed(const at::Tensor& x, const MessageContext& context, ByteWriter& out) const override {
    IndexSet indices;
    write_groups(span_of(x), shape_of(meta_of(x)), context, out, &indices);
    return indices;
  }
  Decoded read_indexed(ByteReader& in, const MessageMeta& meta, const MessageContext& context) const override {
    Decoded message{at::empty(meta.shape, at::kFloat), {}};
    read_groups(in, shape_of(meta), context, span_of(message.tensor), &message.indices);
    return message;
  }
  IndexSet write_sum(const at::Tensor& x, const at::Tensor& residual, at::Tensor& left,
                     const MessageContext& context, ByteWriter& out) const override {
    const SparseShape shape = shape_of(meta_of(x));
    IndexSet indices;
    format_->write(shape, LargestSums(x, residual, left, shape), context, out,
                   context.wants_indices ? &indices : nullptr);
    return indices;
  }
  IndexSet write_difference(const at::Tensor& x, at::Tensor& estimate, const MessageContext& context,
                            ByteWriter& out) const override {
    thread_local IndexSet own;  // undo() needs them in any case
    IndexSet wanted;
    IndexSet& indices = context.wants_indices ? wanted : own;
    const SparseShape shape = shape_of(meta_of(x));
    const LargestDifferences source(x, estimate, shape);
    try {
      format_->write(shape, source, context, out, &indices);
    } catch (...) {
      source.undo(indices);
      throw;
    }
    return wanted;
  }
  IndexSet read_difference(ByteReader& in, at::Tensor& estimate, const MessageContext& context) const override {
    const SparseShape shape = shape_of(meta_of(estimate));
    IndexSet indices;
    format_->read(in, shape, Added(span_of(estimate), shape.n), context,
                  context.wants_indices ? &indices : nullptr);
    expect_end(in);
    return indices;
  }
  SparseShape shape_of(const MessageMeta& meta) const override {
    const size_t groups = selection_.per_sample ? meta.rows() : 1;
    const size_t n = selection_.per_sample ? meta.row_size() : meta.elements();
    check_group_size("topk", n);
    const size_t k = selection_.share.of(n);
    const size_t width = meta.shape.size() > 1 ? static_cast<size_t>(meta.shape.back()) : n;
    return {groups, n, half_ ? (k + (*half_ == Half::larger ? 1 : 0)) / 2 : k, std::max<size_t>(1, width)};
  }

 protected:
  PayloadSize do_payload_size(const MessageMeta& meta) const override {
    const SparseShape shape = shape_of(meta);
    return shape.k == 0 ? PayloadSize{0, true} : format_->size(shape);
  }

  void do_encode(std::span<const float> x, const MessageMeta& meta, const MessageContext& context,
                 ByteWriter& out) const override {
    write_groups(x, shape_of(meta), context, out, nullptr);
  }

  void do_decode(ByteReader& in, const MessageMeta& meta, const MessageContext& context,
                 std::span<float> out) const override {
    read_groups(in, shape_of(meta), context, out, nullptr);
  }

 private:
  static at::Tensor groups_of(const at::Tensor& x, const SparseShape& shape) {
    return x.view({static_cast<int64_t>(shape.groups), static_cast<int64_t>(shape.n)});
  }

  /// The positions that groups [G, n] keep, int64 [G, k] in any order.
  static at::Tensor kept_of(const at::Tensor& groups, const SparseShape& shape) {
    // Keys are distinct: magnitude first, then the lower index, so any order of comparison agrees.
    const at::Tensor magnitude = groups.view(at::kInt).bitwise_and(0x7fffffff).to(at::kLong);
    const at::Tensor from_last = at::arange(groups.size(1) - 1, -1, -1, groups.options().dtype(at::kLong));
    const at::Tensor keys = magnitude.bitwise_left_shift(32).bitwise_or(from_last);
    return std::get<1>(keys.topk(static_cast<int64_t>(shape.k), 1, true, /*sorted=*/false));
  }

  void write_groups(std::span<const float> x, const SparseShape& shape, const MessageContext& context,
                    ByteWriter& out, IndexSet* indices) const {
    // A value that is not finite is among the largest, so the kept values tell for all.
    if (shape.k == 0) return;
    if (shape.k < shape.n) return format_->write(shape, Largest(x, shape), context, out, indices);
    IndexSet all{shape, {}};
    format_->write_values(x, all, context, out);
    if (indices != nullptr) *indices = std::move(all);
  }

  void read_groups(ByteReader& in, const SparseShape& shape, const MessageContext& context,
                   std::span<float> out, IndexSet* indices) const {
    if (shape.k == 0) {
      std::ranges::fill(out, 0.0F);
      return;
    }
    if (shape.k < shape.n) return format_->read(in, shape, Scattered(out, shape.n), context, indices);
    IndexSet all{shape, {}};
    format_->read_values(in, all, context, out);
    if (indices != nullptr) *indices = std::move(all);
  }

  class ByKernels : public FusedByKernels {
   public:
    explicit ByKernels(const TopK& codec) : codec_(codec) {}

   protected:
    const Codec& codec() const override { return codec_; }
    at::Tensor encode_by(const DeviceKernels& kernels, const at::Tensor& x, const KernelFeedback& feedback,
                         const MessageContext& /*context*/) const override {
      const SparseShape shape = codec_.shape_of(meta_of(x));
      return SparseFormat::message_of(
          codec_.format_->largest_by(kernels, groups_of(x, shape), shape, feedback));
    }
    bool add_by(const DeviceKernels& kernels, const at::Tensor& message, at::Tensor& sum) const override {
      return codec_.format_->add_by(kernels, message, codec_.shape_of(meta_of(sum)), sum);
    }

   private:
    const TopK& codec_;
  };

  Selection selection_;
  std::shared_ptr<const SparseFormat> format_;
  ByKernels by_kernels_{*this};
  std::optional<Half> half_;  ///< set: a half of the k that the share gives
};

IndexCode parse_index(OperatorSpec& spec) {
  const std::string index = spec.option("index", "auto");
  if (index == "auto") return IndexCode::automatic;
  if (index == "bitmap") return IndexCode::bitmap;
  if (index == "rice") return IndexCode::rice;
  if (index == "interlaced") return IndexCode::interlaced;
  spec.reject("index", index, "auto, bitmap, rice or interlaced");
}

}  // namespace

std::unique_ptr<Codec> make_topk(CodecIdentity identity, OperatorSpec spec) {
  const Fraction share = share_from(spec, "elements");
  const std::string scope = spec.option("scope", "sample");
  const size_t block = scope.starts_with("block:") ? Scope::from(spec, "sample").block() : 0;
  if (block == 0 && scope != "sample" && scope != "tensor") {
    spec.reject("scope", scope, "sample, tensor or block:N");
  }
  auto values = kept_values_from(spec);
  const IndexCode index = parse_index(spec);
  spec.finish();
  const Sparsifier::Selection selection{identity.id, share, scope != "tensor"};
  auto topk =
      std::make_unique<TopK>(identity, selection, std::make_shared<SparseFormat>(index, std::move(values)));
  if (block == 0) return topk;
  return std::make_unique<InBlocks>(std::move(identity), std::move(topk), block);
}

}  // namespace strait
