#pragma once

#include <memory>
#include <utility>

#include "strait/codecs/sparsifier.h"

namespace strait {

/// A codec that keeps k of the n elements of each group and says which before, and apart from, their values.
/// Payload: a head of fixed size for each group, then the lists of values (ValueLists). Where k == n there are
/// no heads. A codec of this kind implements what it does with one group.
class SelectingCodec : public Codec, public Sparsifier {
 public:
  /// Keeps k by `selection` and writes what it keeps so.
  SelectingCodec(CodecIdentity identity, Selection selection, ValueLists values)
      : Codec(std::move(identity)), selection_(selection), values_(std::move(values)) {}

  bool is_row_wise() const override { return selection_.per_sample; }
  const Sparsifier* sparsifier() const final { return this; }
  Selection selection() const final { return selection_; }
  const ValueLists& values() const final { return values_; }
  bool sends_index_sets() const final { return false; }
  IndexSet write_indexed(const at::Tensor& x, const MessageContext& context, ByteWriter& out) const final;
  Decoded read_indexed(ByteReader& in, const MessageMeta& meta, const MessageContext& context) const final;
  at::Tensor reconstruct(const at::Tensor& x, const MessageContext& context) const final;
  at::Tensor device_encode(const at::Tensor& x, const MessageContext& context) const final;
  at::Tensor device_decode(const at::Tensor& payload, const MessageMeta& meta,
                           const MessageContext& context) const final;

 protected:
  /// A group of a message, with what both ends know of it.
  struct Group {
    size_t number = 0;              ///< in the message
    const SparseShape& shape;       ///< of the message's index set
    const MessageMeta& meta;        ///< of the message
    const MessageContext& context;  ///< of the message
  };

  /// Bytes of a group's head, where k < n.
  virtual size_t head_size(const MessageMeta& meta) const = 0;

  // Only where k < n.

  /// Marks the k elements of x that the group keeps, and fills its head. Throws NumericError when x has an
  /// element that is not finite, among those that are not kept at least.
  virtual void choose(std::span<const float> x, const Group& group, std::span<std::byte> head,
                      std::span<uint64_t> mask) const = 0;

  /// Marks the same elements. Throws WireError for a head that choose() cannot have written.
  virtual void read_choice(std::span<const std::byte> head, const Group& group,
                           std::span<uint64_t> mask) const = 0;

  /// The positions in their groups that a message with groups [G, n] keeps, int64 [G, k] in any order, on its
  /// device. Throws NumericError as choose() does.
  virtual at::Tensor kept_of(const at::Tensor& groups, const MessageMeta& meta,
                             const MessageContext& context) const = 0;

  /// The heads of groups that keep these positions, int64 [G, k] in ascending order: uint8 [G, head_size()].
  virtual at::Tensor heads_of(const at::Tensor& kept, const MessageMeta& meta) const = 0;

  /// The way back, likewise in ascending order; undefined for heads that choose() cannot have written.
  virtual at::Tensor kept_by(const at::Tensor& heads, const MessageMeta& meta,
                             const MessageContext& context) const = 0;

  PayloadSize do_payload_size(const MessageMeta& meta) const final;
  void do_encode(std::span<const float> x, const MessageMeta& meta, const MessageContext& context,
                 ByteWriter& out) const final;
  void do_decode(ByteReader& in, const MessageMeta& meta, const MessageContext& context,
                 std::span<float> out) const final;

 private:
  size_t all_heads_size(const SparseShape& shape, const MessageMeta& meta) const;
  void write_groups(std::span<const float> x, const MessageMeta& meta, const MessageContext& context,
                    ByteWriter& out, IndexSet& indices) const;
  void read_groups(ByteReader& in, const MessageMeta& meta, const MessageContext& context, std::span<float> out,
                   IndexSet& indices) const;

  Selection selection_;
  ValueLists values_;
};

/// The elements of a tensor on the CPU that is float32 and contiguous.
std::span<float> span_of(const at::Tensor& x);

/// The argument of a codec that selects. `what` it keeps a share of is in the plural. Throws InputError.
Fraction share_from(OperatorSpec& spec, std::string_view what);

/// The same and its option `scope`: `sample` or `tensor`. Throws InputError.
Sparsifier::Selection selection_from(const CodecIdentity& identity, OperatorSpec& spec, std::string_view what,
                                     const char* scope);

/// The option `values` of such a codec. Throws InputError.
std::unique_ptr<const ValueFormat> kept_values_from(OperatorSpec& spec);

/// A group has fewer than 2^32 elements, which an index counts.
void check_group_size(std::string_view codec, size_t n);

}  // namespace strait
