#include "strait/codecs/in_blocks.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/constant_pad_nd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "strait/base/error.h"

namespace strait {
namespace {

/// The context of a message's blocks, which are rows to their codec.
MessageContext context_of_blocks(const MessageContext& context, const MessageMeta& meta,
                                 const MessageMeta& blocks) {
  MessageContext own = context;
  own.first_row *= blocks.rows() / meta.rows();
  return own;
}

/// Memory for the elements of a message with those behind its rows.
std::span<float> own_space(size_t elements) {
  thread_local std::vector<float> space;
  if (space.size() < elements) space.resize(elements);
  return std::span(space).first(elements);
}

}  // namespace

InBlocks::InBlocks(CodecIdentity identity, std::shared_ptr<const Codec> of_rows, size_t block)
    : Codec(std::move(identity)), of_rows_(std::move(of_rows)), block_(block) {
  STRAIT_CHECK(of_rows_->is_row_wise() && block > 0, "{} in blocks of {}", of_rows_->spec(), block);
}

MessageMeta InBlocks::blocks_of(const MessageMeta& meta) const {
  const size_t row = meta.row_size();
  const size_t size = std::min(block_, row);
  return {{static_cast<int64_t>(meta.rows() * ((row + size - 1) / size)), static_cast<int64_t>(size)}};
}

/// The message as its blocks.
at::Tensor InBlocks::in_blocks(const at::Tensor& x, const MessageMeta& blocks) {
  const MessageMeta meta = meta_of(x);
  const auto rows = static_cast<int64_t>(meta.rows());
  const auto row = static_cast<int64_t>(meta.row_size());
  const auto padded = static_cast<int64_t>(blocks.elements()) / rows;
  return at::constant_pad_nd(x.reshape({rows, row}), {0, padded - row}).view(blocks.shape);
}

/// The way back; undefined stays undefined.
at::Tensor InBlocks::from_blocks(const at::Tensor& seen, const MessageMeta& meta) {
  if (!seen.defined()) return {};
  const at::Tensor rows = seen.reshape({static_cast<int64_t>(meta.rows()), -1});
  return rows.narrow(1, 0, static_cast<int64_t>(meta.row_size())).reshape(meta.shape).contiguous();
}

at::Tensor InBlocks::reconstruct(const at::Tensor& x, const MessageContext& context) const {
  if (x.numel() == 0) return x.clone(at::MemoryFormat::Contiguous);
  const MessageMeta meta = meta_of(x);
  const MessageMeta blocks = blocks_of(meta);
  const MessageContext own = context_of_blocks(context, meta, blocks);
  return from_blocks(of_rows_->reconstruct(in_blocks(x, blocks), own), meta);
}

at::Tensor InBlocks::reference(const at::Tensor& x) const {
  const MessageMeta meta = meta_of(x);
  return from_blocks(of_rows_->reference(in_blocks(x, blocks_of(meta))), meta);
}

at::Tensor InBlocks::device_encode(const at::Tensor& x, const MessageContext& context) const {
  const MessageMeta meta = meta_of(x);
  const MessageMeta blocks = blocks_of(meta);
  return of_rows_->device_encode(in_blocks(x, blocks), context_of_blocks(context, meta, blocks));
}

at::Tensor InBlocks::device_decode(const at::Tensor& payload, const MessageMeta& meta,
                                   const MessageContext& context) const {
  const MessageMeta blocks = blocks_of(meta);
  return from_blocks(of_rows_->device_decode(payload, blocks, context_of_blocks(context, meta, blocks)), meta);
}

size_t InBlocks::form_size(const MessageMeta& meta) const {
  return of_rows_->device_form()->form_size(blocks_of(meta));
}

IndexSet InBlocks::payload_of_form(std::span<const std::byte> form, const MessageMeta& meta, bool wants_indices,
                                   ByteWriter& out) const {
  return of_rows_->device_form()->payload_of_form(form, blocks_of(meta), wants_indices, out);
}

IndexSet InBlocks::form_of_payload(ByteReader& in, const MessageMeta& meta, bool wants_indices,
                                   std::span<std::byte> form) const {
  return of_rows_->device_form()->form_of_payload(in, blocks_of(meta), wants_indices, form);
}

PayloadSize InBlocks::do_payload_size(const MessageMeta& meta) const {
  return of_rows_->payload_size(blocks_of(meta));
}

void InBlocks::do_encode(std::span<const float> x, const MessageMeta& meta, const MessageContext& context,
                         ByteWriter& out) const {
  const MessageMeta blocks = blocks_of(meta);
  const MessageContext own = context_of_blocks(context, meta, blocks);
  const size_t row = meta.row_size();
  const size_t padded = blocks.elements() / meta.rows();
  if (padded == row) return of_rows_->write_elements(x, blocks, own, out);
  const auto space = own_space(blocks.elements());
  for (size_t i = 0; i < meta.rows(); ++i) {
    const auto to = space.subspan(i * padded, padded);
    std::ranges::copy(x.subspan(i * row, row), to.begin());
    std::ranges::fill(to.subspan(row), 0.0F);
  }
  of_rows_->write_elements(space, blocks, own, out);
}

void InBlocks::do_decode(ByteReader& in, const MessageMeta& meta, const MessageContext& context,
                         std::span<float> out) const {
  const MessageMeta blocks = blocks_of(meta);
  const MessageContext own = context_of_blocks(context, meta, blocks);
  const size_t row = meta.row_size();
  const size_t padded = blocks.elements() / meta.rows();
  if (padded == row) return of_rows_->read_elements(in, blocks, own, out);
  const auto space = own_space(blocks.elements());
  of_rows_->read_elements(in, blocks, own, space);
  for (size_t i = 0; i < meta.rows(); ++i) {
    std::ranges::copy(space.subspan(i * padded, row), out.subspan(i * row, row).begin());
  }
}

}  // namespace strait
