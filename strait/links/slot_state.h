#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "strait/codecs/codec.h"
#include "strait/links/link.h"

namespace strait {

/// What one end of a link keeps for the rows of messages; zero until something is kept.
class SlotState {
 public:
  virtual ~SlotState() = default;

  /// What is kept for the message's rows, float32 on the message's device, contiguous. May share memory with
  /// the state.
  virtual at::Tensor rows(const MessageMeta& meta, const MessageContext& context) const = 0;

  /// The same for a message of evaluation, whose samples are none of the training set.
  virtual at::Tensor evaluation_rows(const MessageMeta& meta, const MessageContext& context) const = 0;

  /// Makes `value`, which has the shape of the message, what is kept for its rows. Takes over its memory, which
  /// may be that of rows(). Throws NumericError for a value that cannot be kept; nothing has changed then.
  virtual void set_rows(const at::Tensor& value, const MessageContext& context) = 0;

  /// Memory of the message's shape for set_rows(), which is none of rows(); on the CPU.
  virtual at::Tensor room(const MessageMeta& meta) const = 0;

  /// Says which samples the message after the next one will be of.
  virtual void prefetch(std::span<const int64_t> /*ids*/) {}

  /// Shows the state under this name.
  virtual void visit(std::string_view name, StateVisitor& visitor) = 0;
};

/// State shaped like the batch: row i serves row i of every batch (the paper's "global buffer"). It grows when
/// a row is first used, and lies where its last message did. A message uses the rows at which it stands in its
/// batch, so that one micro-batch or several use the same rows, and a short batch leaves the others as they
/// are. Visitors see one tensor [rows, ...].
class RowState : public SlotState {
 public:
  at::Tensor rows(const MessageMeta& meta, const MessageContext& context) const override;
  at::Tensor evaluation_rows(const MessageMeta& meta, const MessageContext& context) const override {
    return rows(meta, context);
  }
  void set_rows(const at::Tensor& value, const MessageContext& context) override;
  /// The memory of rows that were replaced, where there is some.
  at::Tensor room(const MessageMeta& meta) const override;
  void visit(std::string_view name, StateVisitor& visitor) override;

 private:
  int64_t size() const;
  void cut(int64_t row);

  /// Rows that follow each other; those that a message replaces are one, so that it moves no others.
  std::vector<at::Tensor> pieces_;
  at::Tensor spare_;
};

/// The states of the two ends of a link.
struct SlotEnds {
  std::unique_ptr<SlotState> sender;    ///< the sender's
  std::unique_ptr<SlotState> receiver;  ///< the receiver's
};

/// A state as the options say: a RowState, or one in a SampleStore.
std::unique_ptr<SlotState> make_slot_state(const SlotOptions& options);

/// States of both ends in one process for what the two keep alike (Link::make_ends()). One of samples is
/// shared: the receiver's changes it, and the sender's only reads it.
SlotEnds make_slot_ends(const SlotOptions& options);

/// The codec as one that does the arithmetic around it itself, where it can for this message, and nobody wants
/// to see more of it than its bytes; else null. `codec` may be null.
const FusedFeedback* fused(const Codec* codec, const MessageMeta& meta, const MessageContext& context);

/// Codec::write() followed by Codec::read() of the bytes just written: what the receiver will see, with the
/// positions where the context wants them.
Decoded write_and_read(const Codec& codec, const at::Tensor& x, const MessageContext& context, ByteWriter& out);

/// Throws NumericError when a message would leave a state that is not finite.
void expect_finite(const at::Tensor& state);

}  // namespace strait
