#pragma once

#include <string_view>

#include "strait/codecs/selective.h"
#include "strait/links/link.h"

namespace strait {

/// State shaped like the batch: row i serves row i of every batch (the paper's "global buffer"). It starts
/// at zero and grows when a row is first used. A message uses the rows at which it stands in its batch, so
/// that one micro-batch or several use the same rows, and a short batch leaves the others as they are.
class SlotState {
 public:
  /// The message's rows, float32 on the CPU. May share memory with the state: to be read at once only.
  at::Tensor rows(const MessageMeta& meta, const MessageContext& context) const;

  /// The message's rows themselves, contiguous, to be changed in place.
  at::Tensor own_rows(const MessageMeta& meta, const MessageContext& context);

  /// Replaces the message's rows by a copy of `value`, which has the shape of the message.
  void set_rows(const at::Tensor& value, const MessageContext& context);

  void visit(std::string_view name, StateVisitor& visitor) { visitor.tensor(name, all_); }

 private:
  at::Tensor all_;  ///< [rows used so far, ...]; undefined before the first
};

/// The codec as one that does the arithmetic around it itself, where it can for this message and nobody wants
/// to see more of it than its bytes; else null.
const Selective* fused(const Codec& codec, const MessageMeta& meta, const MessageContext& context);

/// encode() followed by decode() of the bytes just written: what the receiver will see.
at::Tensor encode_and_decode(const Codec& codec, const at::Tensor& x, const MessageContext& context,
                             ByteWriter& out);

}  // namespace strait
