#pragma once

#include <memory>

#include "strait/codecs/codec.h"
#include "strait/codecs/fraction.h"
#include "strait/codecs/sparse.h"

namespace strait {

/// What a codec can do besides that keeps, of every group of n elements, k and gives the others as 0.
class Sparsifier {
 public:
  /// Which elements are kept; codecs of equal selections keep the same ones of the same message.
  struct Selection {
    uint16_t codec = 0;      ///< Codec::id(), the rule
    Fraction share;          ///< k = ceil(share * n), or so for what the rule counts
    bool per_sample = true;  ///< a sample is a group; otherwise the whole message is one

    bool operator==(const Selection&) const = default;
  };

  /// Which part of k: ceil(k / 2) or floor(k / 2).
  enum class Half { larger, smaller };

  virtual ~Sparsifier() = default;

  /// What the operator keeps.
  virtual Selection selection() const = 0;

  /// The same operator with ceil(k / 2) or floor(k / 2) for k; the latter may keep nothing. Null for one that
  /// does not keep the elements of largest magnitude.
  virtual std::shared_ptr<const Codec> half(Half /*half*/) const { return nullptr; }

  /// The shape of a message's index set. Throws InputError for a message that the operator does not take.
  virtual SparseShape shape_of(const MessageMeta& meta) const = 0;

  /// How the kept values are written.
  virtual const ValueLists& values() const = 0;

  /// Whether a message that keeps k < n says so by index sets (SparseFormat).
  virtual bool sends_index_sets() const = 0;

  /// Codec::write() and Codec::read() of a message that is not empty, with the indices that it keeps. `x` is
  /// float32 on the CPU and contiguous.
  virtual IndexSet write_indexed(const at::Tensor& x, const MessageContext& context, ByteWriter& out) const = 0;

  /// Reads what write_indexed() writes; the other positions are +0. Throws WireError.
  virtual Decoded read_indexed(ByteReader& in, const MessageMeta& meta,
                               const MessageContext& context) const = 0;

  /// Whether of messages of this shape something is kept and something not.
  bool is_partial(const MessageMeta& meta) const {
    if (meta.elements() == 0) return false;
    const SparseShape shape = shape_of(meta);
    return shape.k > 0 && shape.k < shape.n;
  }
};

}  // namespace strait
