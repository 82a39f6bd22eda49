#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "strait/links/link.h"

namespace strait {

/// Feedback that keeps something for every row of the batch and sends one message of its compressor: of a
/// codec, or of a link with state of its own.
class RowFeedback : public Link {
 public:
  /// Around a codec.
  RowFeedback(uint16_t id, const std::shared_ptr<const Codec>& codec)
      : Link(id, codec), compressor_(make_link(codec)), fusable_(codec) {}

  /// Around a compressor with state.
  RowFeedback(uint16_t id, std::shared_ptr<const Link> compressor)
      : Link(id, compressor->shared_codec()), compressor_(std::move(compressor)) {}

  Slots slots() const override { return Slots::rows; }
  bool sends_codec_messages() const override { return compressor_->sends_codec_messages(); }
  std::vector<SparseShape> index_sets(const MessageMeta& meta) const override {
    return compressor_->index_sets(meta);
  }
  PayloadSize payload_size(const MessageMeta& meta) const override { return compressor_->payload_size(meta); }

 protected:
  /// What compresses.
  const Link& compressor() const { return *compressor_; }

  /// The compressor where it is a codec and nothing else, which fused() may ask; else null.
  const std::shared_ptr<const Codec>& fusable() const { return fusable_; }

 private:
  std::shared_ptr<const Link> compressor_;
  std::shared_ptr<const Codec> fusable_;
};

}  // namespace strait
