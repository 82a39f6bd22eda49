#pragma once

#include <functional>
#include <optional>

#include "strait/codecs/codec.h"
#include "strait/codecs/device_kernels.h"
#include "strait/codecs/groups.h"
#include "strait/kernels/quantise.h"

namespace strait {

/// The groups of a message as a tensor operation sees them, on any device.
struct TensorGroups {
  at::Tensor values;  ///< [G, n], filled up behind the first `sizes` elements of a group
  at::Tensor sizes;   ///< elements of each group, int64 [G, 1]
  std::function<at::Tensor()>
      dither;  ///< gives the elements' random numbers, float32 [G, n] (kernels::dither_at)
};

/// What is sent of groups, as tensors.
struct CodedGroups {
  at::Tensor headers;  ///< uint8 [G, bytes of a header]
  at::Tensor codes;    ///< int64 [G, n]; behind the elements of a short group anything
};

/// A codec that sends of each group a header of fixed size, and a code of fixed size for each of its elements.
/// Payload: all headers, then all codes (Grid::codes()). A codec of this kind implements what it does with
/// groups as tensors, and do_encode() and do_decode().
class TensorGroupCodec : public Codec {
 public:
  at::Tensor reconstruct(const at::Tensor& x, const MessageContext& context) const override;
  at::Tensor device_encode(const at::Tensor& x, const MessageContext& context) const override;
  at::Tensor device_decode(const at::Tensor& payload, const MessageMeta& meta,
                           const MessageContext& context) const override;
  bool is_row_wise() const override { return scope_.is_row_wise(); }

 protected:
  /// `header_size` bytes a group, 1 <= bits <= 8 an element. `filler` fills TensorGroups up.
  TensorGroupCodec(CodecIdentity identity, Scope scope, size_t header_size, unsigned bits, Grid::Filler filler)
      : Codec(std::move(identity)), scope_(scope), header_size_(header_size), bits_(bits), filler_(filler) {}

  /// What makes the groups.
  const Scope& scope() const { return scope_; }

  /// Bytes of a group's header.
  size_t header_size() const { return header_size_; }

  /// Bits of an element's code.
  unsigned bits() const { return bits_; }

  /// The levels, rounding and format of GroupForm, where kernels know them.
  virtual std::optional<GroupForm> kernel_form() const { return std::nullopt; }

  /// The same with all that it needs for a message.
  std::optional<GroupForm> kernel_form_of(const MessageMeta& meta, const MessageContext& context) const;

  /// What do_encode() writes of the groups. Throws NumericError as that does.
  virtual CodedGroups code_groups(const TensorGroups& groups) const = 0;

  /// What the receiver sees of them, float32 [G, n]; undefined for what code_groups() cannot have given.
  virtual at::Tensor values_of(const CodedGroups& groups) const = 0;

  PayloadSize do_payload_size(const MessageMeta& meta) const final;

 private:
  CodedGroups coded(const at::Tensor& x, const Grid& grid, const MessageContext& context) const;

  Scope scope_;
  size_t header_size_;
  unsigned bits_;
  Grid::Filler filler_;
};

/// Such a codec that encodes and decodes runs of groups, which threads share.
class GroupCodec : public TensorGroupCodec {
 protected:
  /// As TensorGroupCodec's; groups are filled up with zeros.
  GroupCodec(CodecIdentity identity, Scope scope, size_t header_size, unsigned bits)
      : TensorGroupCodec(std::move(identity), scope, header_size, bits, Grid::Filler::zeros) {}

  /// Writes groups of `size` elements that follow each other, Grid::kRunGroups at most, or one of at least one
  /// element. The first element draws the number at dither.first_index. Throws NumericError for a value that
  /// cannot be sent.
  virtual void encode_groups(std::span<const float> x, size_t size, const kernels::Dither& dither,
                             ByteWriter& headers, std::span<std::byte> codes) const = 0;

  /// Reads such groups. Throws WireError for what encode_groups() cannot have written, but for the padding of
  /// the codes, which is zero.
  virtual void decode_groups(ByteReader& headers, std::span<const std::byte> codes, size_t size,
                             std::span<float> out) const = 0;

  void do_encode(std::span<const float> x, const MessageMeta& meta, const MessageContext& context,
                 ByteWriter& out) const final;
  void do_decode(ByteReader& in, const MessageMeta& meta, const MessageContext& context,
                 std::span<float> out) const final;
};

/// Such a codec that takes one group after the other.
class OneByOneCodec : public GroupCodec {
 protected:
  using GroupCodec::GroupCodec;

  /// encode_groups() of one group.
  virtual void encode_group(std::span<const float> x, const kernels::Dither& dither, ByteWriter& header,
                            std::span<std::byte> codes) const = 0;

  /// decode_groups() of one group.
  virtual void decode_group(ByteReader& header, std::span<const std::byte> codes,
                            std::span<float> out) const = 0;

  void encode_groups(std::span<const float> x, size_t size, const kernels::Dither& dither, ByteWriter& headers,
                     std::span<std::byte> codes) const final;
  void decode_groups(ByteReader& headers, std::span<const std::byte> codes, size_t size,
                     std::span<float> out) const final;
};

}  // namespace strait
