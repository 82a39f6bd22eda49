#include "strait/codecs/selecting_codec.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <limits>

#include "strait/base/error.h"

namespace strait {
namespace {

/// Space for the indices of a message that nobody wants to keep.
IndexSet& own_index_set() {
  thread_local IndexSet indices;
  return indices;
}

/// The heads and the lists of values of a payload, as long for one group as for another.
template <class Byte>
class Parts {
 public:
  Parts(std::span<Byte> heads, std::span<Byte> lists, size_t groups)
      : heads_(heads), lists_(lists), head_(heads.size() / groups), list_(lists.size() / groups) {}

  std::span<Byte> head(size_t group) const { return heads_.subspan(group * head_, head_); }
  std::span<Byte> list(size_t group) const { return lists_.subspan(group * list_, list_); }

 private:
  std::span<Byte> heads_;
  std::span<Byte> lists_;
  size_t head_;  ///< bytes of a group
  size_t list_;  ///< bytes of a group
};

at::Tensor groups_of(const at::Tensor& x, const SparseShape& shape) {
  return x.view({static_cast<int64_t>(shape.groups), static_cast<int64_t>(shape.n)});
}

}  // namespace

std::span<float> span_of(const at::Tensor& x) { return {x.data_ptr<float>(), static_cast<size_t>(x.numel())}; }

void check_group_size(std::string_view codec, size_t n) {
  constexpr size_t kMost = std::numeric_limits<uint32_t>::max();
  if (n > kMost)
    throw InputError("{}: expected at most {} elements to select among, found {}", codec, kMost, n);
}

size_t SelectingCodec::all_heads_size(const SparseShape& shape, const MessageMeta& meta) const {
  return shape.k < shape.n ? shape.groups * head_size(meta) : 0;
}

PayloadSize SelectingCodec::do_payload_size(const MessageMeta& meta) const {
  const SparseShape shape = shape_of(meta);
  return {all_heads_size(shape, meta) + values_.values_size(shape), true};
}

void SelectingCodec::write_groups(std::span<const float> x, const MessageMeta& meta,
                                  const MessageContext& context, ByteWriter& out, IndexSet& indices) const {
  const SparseShape shape = shape_of(meta);
  indices.reset(shape);
  const auto heads = out.claim(all_heads_size(shape, meta));
  const Parts<std::byte> parts(heads, out.claim(values_.values_size(shape)), shape.groups);
  for_each_group(shape, [&](size_t group) {
    const auto part = shape.part(x, group);
    const auto mask = indices.mask(group);
    if (shape.k < shape.n) {
      choose(part, {group, shape, meta, context}, parts.head(group), mask);
    }
    values_.write_list(part, mask, shape, context_of_list(context, group), parts.list(group));
  });
}

void SelectingCodec::read_groups(ByteReader& in, const MessageMeta& meta, const MessageContext& context,
                                 std::span<float> out, IndexSet& indices) const {
  const SparseShape shape = shape_of(meta);
  indices.reset(shape);
  const auto heads = in.take(all_heads_size(shape, meta));
  const Parts<const std::byte> parts(heads, in.take(values_.values_size(shape)), shape.groups);
  for_each_group(shape, [&](size_t group) {
    const auto mask = indices.mask(group);
    if (shape.k < shape.n) {
      read_choice(parts.head(group), {group, shape, meta, context}, mask);
    }
    values_.read_list(parts.list(group), mask, shape, context_of_list(context, group), shape.part(out, group));
  });
}

IndexSet SelectingCodec::write_indexed(const at::Tensor& x, const MessageContext& context,
                                       ByteWriter& out) const {
  IndexSet indices;
  write_groups(span_of(x), meta_of(x), context, out, indices);
  return indices;
}

Decoded SelectingCodec::read_indexed(ByteReader& in, const MessageMeta& meta,
                                     const MessageContext& context) const {
  Decoded message{at::empty(meta.shape, at::kFloat), {}};
  read_groups(in, meta, context, span_of(message.tensor), message.indices);
  return message;
}

void SelectingCodec::do_encode(std::span<const float> x, const MessageMeta& meta, const MessageContext& context,
                               ByteWriter& out) const {
  write_groups(x, meta, context, out, own_index_set());
}

void SelectingCodec::do_decode(ByteReader& in, const MessageMeta& meta, const MessageContext& context,
                               std::span<float> out) const {
  read_groups(in, meta, context, out, own_index_set());
}

at::Tensor SelectingCodec::reconstruct(const at::Tensor& x, const MessageContext& context) const {
  if (x.numel() == 0) return x.clone(at::MemoryFormat::Contiguous);
  const MessageMeta meta = meta_of(x);
  const SparseShape shape = shape_of(meta);
  const at::Tensor groups = groups_of(x.contiguous(), shape);
  const at::Tensor kept = shape.k == shape.n ? at::Tensor() : kept_of(groups, meta, context);
  return values_.reconstruct(groups, kept, shape, context).view(x.sizes());
}

at::Tensor SelectingCodec::device_encode(const at::Tensor& x, const MessageContext& context) const {
  if (!values_.values().has_composed_form()) return {};
  const MessageMeta meta = meta_of(x);
  const SparseShape shape = shape_of(meta);
  const at::Tensor groups = groups_of(x, shape);
  if (shape.k == shape.n) return values_.composed_write(groups, {}, shape).reshape(-1);
  const at::Tensor kept = std::get<0>(kept_of(groups, meta, context).sort(1));
  return at::cat({heads_of(kept, meta).reshape(-1), values_.composed_write(groups, kept, shape).reshape(-1)});
}

at::Tensor SelectingCodec::device_decode(const at::Tensor& payload, const MessageMeta& meta,
                                         const MessageContext& context) const {
  if (!values_.values().has_composed_form()) return {};
  const SparseShape shape = shape_of(meta);
  const auto groups = static_cast<int64_t>(shape.groups);
  const auto heads = static_cast<int64_t>(all_heads_size(shape, meta));
  at::Tensor kept;
  if (shape.k < shape.n) {
    kept = kept_by(payload.narrow(0, 0, heads).view({groups, -1}), meta, context);
    if (!kept.defined()) return {};
  }
  const at::Tensor lists = payload.narrow(0, heads, payload.numel() - heads).view({groups, -1});
  const at::Tensor seen = values_.composed_read(lists, kept, shape);
  return seen.defined() ? seen.view(meta.shape) : seen;
}

Fraction share_from(OperatorSpec& spec, std::string_view what) {
  const std::string& argument = spec.argument(fmt::format("the share of {} to keep", what));
  const auto share = Fraction::parse(argument);
  if (!share) spec.reject("the share", argument, "a decimal above 0, at most 1, of at most 9 places");
  return *share;
}

Sparsifier::Selection selection_from(const CodecIdentity& identity, OperatorSpec& spec, std::string_view what,
                                     const char* scope) {
  const Fraction share = share_from(spec, what);
  const std::string found = spec.option("scope", scope);
  if (found != "sample" && found != "tensor") spec.reject("scope", found, "sample or tensor");
  return {identity.id, share, found == "sample"};
}

std::unique_ptr<const ValueFormat> kept_values_from(OperatorSpec& spec) {
  const std::string name = spec.option("values", "fp32");
  try {
    return make_list_format(name);
  } catch (const InputError& error) {
    throw InputError("option values of {}: {}", spec.name(), error.what());
  }
}

}  // namespace strait
