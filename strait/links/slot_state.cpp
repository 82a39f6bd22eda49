#include "strait/links/slot_state.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "strait/base/text.h"
#include "strait/codecs/composed.h"
#include "strait/codecs/device_order.h"
#include "strait/kernels/copy.h"

namespace strait {
namespace {

/// Waits for a device.
bool is_finite(const at::Tensor& state) {
  if (!state.is_cpu()) return are_finite(state);
  const at::Tensor dense = state.contiguous();
  return kernels::all_finite({dense.data_ptr<float>(), static_cast<size_t>(dense.numel())});
}

}  // namespace

int64_t RowState::size() const {
  int64_t rows = 0;
  for (const auto& piece : pieces_) rows += piece.size(0);
  return rows;
}

at::Tensor RowState::rows(const MessageMeta& meta, const MessageContext& context) const {
  const auto first = static_cast<int64_t>(context.first_row);
  const auto end = first + static_cast<int64_t>(meta.rows());
  const auto zeros = [&] {
    return at::zeros(meta.shape, at::TensorOptions(at::kFloat).device(context.device));
  };
  at::Tensor out;
  int64_t begin = 0;
  for (const auto& piece : pieces_) {
    const auto sample = at::IntArrayRef(meta.shape).slice(1);
    if (piece.sizes().slice(1) != sample) {
      throw InputError("its feedback keeps rows of shape {}, found {}", shape_text(piece.sizes().slice(1)),
                       shape_text(sample));
    }
    const int64_t from = std::max(begin, first);
    const int64_t to = std::min(begin + piece.size(0), end);
    if (from < to) keep_for_current_stream(piece);  // which a visitor may have made on another
    if (from == first && to == end) {
      return (to - from == piece.size(0) ? piece : piece.narrow(0, from - begin, to - from)).to(context.device);
    }
    if (from < to) {
      if (!out.defined()) out = zeros();
      out.narrow(0, from - first, to - from).copy_(piece.narrow(0, from - begin, to - from));
    }
    begin += piece.size(0);
  }
  return out.defined() ? out : zeros();
}

void RowState::cut(int64_t row) {
  for (size_t i = 0; i < pieces_.size(); row -= pieces_[i++].size(0)) {
    const at::Tensor piece = pieces_[i];
    if (row <= 0 || row >= piece.size(0)) continue;
    pieces_[i] = piece.narrow(0, 0, row);
    pieces_.insert(pieces_.begin() + static_cast<ptrdiff_t>(i) + 1, piece.narrow(0, row, piece.size(0) - row));
    return;
  }
}

void RowState::set_rows(const at::Tensor& value, const MessageContext& context) {
  if (value.size(0) == 0) return;
  const auto first = static_cast<int64_t>(context.first_row);
  const int64_t end = first + value.size(0);
  if (const int64_t missing = first - size(); missing > 0) {
    auto shape = value.sizes().vec();
    shape[0] = missing;
    pieces_.push_back(at::zeros(shape, value.options()));
  }
  cut(first);
  cut(end);
  auto from = pieces_.begin();
  for (int64_t row = 0; row < first; ++from) row += from->size(0);
  auto to = from;
  for (int64_t row = first; row < end && to != pieces_.end(); ++to) row += to->size(0);
  const bool is_spare = to - from == 1 && from->is_cpu() && from->data_ptr() != value.data_ptr();
  spare_ = is_spare ? *from : at::Tensor();
  pieces_.insert(pieces_.erase(from, to), value.contiguous());
}

at::Tensor RowState::room(const MessageMeta& meta) const {
  return spare_.defined() && spare_.sizes() == at::IntArrayRef(meta.shape) ? spare_
                                                                           : at::empty(meta.shape, at::kFloat);
}

void RowState::visit(std::string_view name, StateVisitor& visitor) {
  for (auto& piece : pieces_) {
    keep_for_current_stream(piece);  // and made on another, where a thread beside the stages decodes
    piece = piece.to(pieces_.front().device());
  }
  at::Tensor all = pieces_.size() > 1 ? at::cat(pieces_) : pieces_.empty() ? at::Tensor() : pieces_.front();
  visitor.tensor(name, all);
  if (all.defined() && all.scalar_type() != at::kFloat) {
    throw InputError("tensor \"{}\" is not the state of rows", name);
  }
  pieces_.clear();
  if (all.defined()) pieces_.push_back(all);
}

const FusedFeedback* fused(const Codec* codec, const MessageMeta& meta, const MessageContext& context) {
  return codec == nullptr || context.wants_received ? nullptr : codec->fused_feedback(meta, context);
}

Decoded write_and_read(const Codec& codec, const at::Tensor& x, const MessageContext& context,
                       ByteWriter& out) {
  MessageContext bytes_only = context;
  bytes_only.wants_indices = false;
  ByteWriter part(out.rest());
  codec.write(x, bytes_only, part);
  ByteReader in(out.claim(part.used()));
  return codec.read(in, meta_of(x), context);
}

void expect_finite(const at::Tensor& state) {
  if (!is_finite(state)) throw NumericError("what feedback keeps of the message is past float32");
}

}  // namespace strait
