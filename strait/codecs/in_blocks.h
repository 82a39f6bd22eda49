#pragma once

#include <cstddef>
#include <memory>

#include "strait/codecs/codec.h"

namespace strait {

/// A codec that treats rows alone, used on blocks of each row: a message [rows, ...] of d elements each is to
/// it one of [rows * ceil(d / N), N], or of [rows, d] where d < N. Zeros stand behind the last elements of a
/// row.
class InBlocks : public Codec, public DeviceForm {
 public:
  /// `block` is N; of_rows->is_row_wise().
  InBlocks(CodecIdentity identity, std::shared_ptr<const Codec> of_rows, size_t block);

  at::Tensor reconstruct(const at::Tensor& x, const MessageContext& context) const override;
  at::Tensor reference(const at::Tensor& x) const override;
  at::Tensor device_encode(const at::Tensor& x, const MessageContext& context) const override;
  at::Tensor device_decode(const at::Tensor& payload, const MessageMeta& meta,
                           const MessageContext& context) const override;
  const DeviceForm* device_form() const override { return of_rows_->device_form() == nullptr ? nullptr : this; }
  size_t form_size(const MessageMeta& meta) const override;
  IndexSet payload_of_form(std::span<const std::byte> form, const MessageMeta& meta, bool wants_indices,
                           ByteWriter& out) const override;
  IndexSet form_of_payload(ByteReader& in, const MessageMeta& meta, bool wants_indices,
                           std::span<std::byte> form) const override;
  bool is_row_wise() const override { return true; }

 protected:
  PayloadSize do_payload_size(const MessageMeta& meta) const override;
  void do_encode(std::span<const float> x, const MessageMeta& meta, const MessageContext& context,
                 ByteWriter& out) const override;
  void do_decode(ByteReader& in, const MessageMeta& meta, const MessageContext& context,
                 std::span<float> out) const override;

 private:
  MessageMeta blocks_of(const MessageMeta& meta) const;
  static at::Tensor in_blocks(const at::Tensor& x, const MessageMeta& blocks);
  static at::Tensor from_blocks(const at::Tensor& seen, const MessageMeta& meta);

  std::shared_ptr<const Codec> of_rows_;
  size_t block_;  ///< elements
};

}  // namespace strait
