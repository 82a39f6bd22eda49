#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "strait/links/link.h"
#include "strait/links/sample_store.h"
#include "strait/links/slot_state.h"

namespace strait {

/// Feedback that keeps something for the rows of a message: for rows of the batch, for samples or for classes.
class SlotFeedback : public Link {
 public:
  Slots slots() const override { return slots_.slots; }
  const StoreOptions* store() const override {
    return slots_.slots == Slots::samples ? &slots_.store : nullptr;
  }

 protected:
  /// As Link; the spec's options say what a slot is.
  SlotFeedback(uint16_t id, std::shared_ptr<const Codec> codec, SlotOptions slots)
      : Link(id, std::move(codec)), slots_(std::move(slots)) {}

  /// What the spec says of its state.
  const SlotOptions& slot_options() const { return slots_; }

  /// What slots keep of what they are set to, for reference(); all of it where they are rows.
  Keeping keeping() const { return keeping_of(slots_); }

 private:
  SlotOptions slots_;
};

/// Slot feedback that sends one message of its compressor: of a codec, or of a link with state of its own.
class CompressorFeedback : public SlotFeedback {
 public:
  bool sends_codec_messages() const override { return compressor_->sends_codec_messages(); }
  std::vector<SparseShape> index_sets(const MessageMeta& meta) const override {
    return compressor_->index_sets(meta);
  }
  PayloadSize payload_size(const MessageMeta& meta) const override { return compressor_->payload_size(meta); }

 protected:
  /// Around a codec.
  CompressorFeedback(uint16_t id, const std::shared_ptr<const Codec>& codec, SlotOptions slots)
      : SlotFeedback(id, codec, std::move(slots)), compressor_(make_link(codec)), fusable_(codec) {}

  /// Around a compressor with state.
  CompressorFeedback(uint16_t id, const std::shared_ptr<const Link>& compressor, SlotOptions slots)
      : SlotFeedback(id, compressor->shared_codec(), std::move(slots)), compressor_(compressor) {}

  /// Whether it can go around this one: where its own rows are samples, other ones every time, around none that
  /// keeps something per row.
  bool fits(const Link& compressor) const {
    return slots() == Slots::rows || compressor.slots() == Slots::none;
  }

  /// What compresses.
  const Link& compressor() const { return *compressor_; }

  /// The compressor where it is a codec and nothing else, which fused() may ask; else null.
  const std::shared_ptr<const Codec>& fusable() const { return fusable_; }

 private:
  std::shared_ptr<const Link> compressor_;
  std::shared_ptr<const Codec> fusable_;
};

/// The same whose state is the sender's alone: the receiver sees what the compressor's does.
class SenderFeedback : public CompressorFeedback {
 public:
  std::unique_ptr<Encoder> make_encoder() const override { return encoder_around(compressor().make_encoder()); }
  std::unique_ptr<Decoder> make_decoder() const override { return compressor().make_decoder(); }
  LinkEnds make_ends() const override {
    LinkEnds ends = compressor().make_ends();
    return {encoder_around(std::move(ends.encoder)), std::move(ends.decoder)};
  }

 protected:
  using CompressorFeedback::CompressorFeedback;

  /// The feedback's encoder around the compressor's.
  virtual std::unique_ptr<Encoder> encoder_around(std::unique_ptr<Encoder> compressor) const = 0;
};

}  // namespace strait
