#pragma once

#include <string_view>
#include <vector>

#include "strait/codecs/sparsifier.h"
#include "strait/links/link.h"

namespace strait {

/// State shaped like the batch: row i serves row i of every batch (the paper's "global buffer"). It starts
/// at zero and grows when a row is first used. A message uses the rows at which it stands in its batch, so
/// that one micro-batch or several use the same rows, and a short batch leaves the others as they are.
class SlotState {
 public:
  /// The message's rows, float32 on the CPU, contiguous. May share memory with the state.
  at::Tensor rows(const MessageMeta& meta, const MessageContext& context) const;

  /// Makes `value`, which has the shape of the message, the message's rows. Takes over its memory, which may be
  /// that of rows().
  void set_rows(const at::Tensor& value, const MessageContext& context);

  /// Memory of the message's shape for set_rows(): that of rows which were replaced, where there is some.
  at::Tensor room(const MessageMeta& meta) const;

  /// Shows the state as one tensor of this name, [rows, ...].
  void visit(std::string_view name, StateVisitor& visitor);

 private:
  int64_t size() const;
  void cut(int64_t row);

  /// Rows that follow each other; those that a message replaces are one, so that it moves no others.
  std::vector<at::Tensor> pieces_;
  at::Tensor spare_;
};

/// The codec as one that does the arithmetic around it itself, where it can for this message and nobody wants
/// to see more of it than its bytes; else null. `codec` may be null.
const Sparsifier* fused(const Codec* codec, const MessageMeta& meta, const MessageContext& context);

/// Codec::write() followed by Codec::read() of the bytes just written: what the receiver will see, with the
/// positions where the context wants them.
Decoded write_and_read(const Codec& codec, const at::Tensor& x, const MessageContext& context, ByteWriter& out);

/// Throws NumericError when a message would leave a state that is not finite.
void expect_finite(const at::Tensor& state);

}  // namespace strait
