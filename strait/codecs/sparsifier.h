#pragma once

#include <memory>

#include "strait/codecs/codec.h"
#include "strait/codecs/fraction.h"
#include "strait/codecs/sparse.h"

namespace strait {

/// What a codec can do besides that keeps, of every group of n elements, k and gives the others as 0.
class Sparsifier {
 public:
  /// Which elements are kept; codecs of equal selections keep the same ones.
  struct Selection {
    Fraction share;          ///< k = ceil(share * n)
    bool per_sample = true;  ///< a sample is a group; otherwise the whole message is one

    bool operator==(const Selection&) const = default;
  };

  /// Which part of k: ceil(k / 2) or floor(k / 2).
  enum class Half { larger, smaller };

  virtual ~Sparsifier() = default;

  /// What the operator keeps.
  virtual Selection selection() const = 0;

  /// The same operator with ceil(k / 2) or floor(k / 2) for k; the latter may keep nothing.
  virtual std::shared_ptr<const Codec> half(Half half) const = 0;

  /// The shape of a message's index set.
  virtual SparseShape shape_of(const MessageMeta& meta) const = 0;

  /// How the kept values are written.
  virtual const SparseFormat& format() const = 0;

  /// Codec::write() and Codec::read() of a message that is not empty, with the indices that it keeps. `x` is
  /// float32 on the CPU and contiguous.
  virtual IndexSet write_indexed(const at::Tensor& x, ByteWriter& out) const = 0;

  /// Reads what write_indexed() writes; the other positions are +0. Throws WireError.
  virtual Decoded read_indexed(ByteReader& in, const MessageMeta& meta) const = 0;

  // For error feedback, the arithmetic around the operator in the passes that it makes anyway. `x` is float32
  // on the CPU and contiguous, and so is the state, of the same shape. All give the indices that the message
  // keeps where the context wants them.

  /// Codec::write() of x + residual; `left`, of other memory, becomes what of it the receiver does not see.
  virtual IndexSet write_sum(const at::Tensor& x, const at::Tensor& residual, at::Tensor& left,
                             const MessageContext& context, ByteWriter& out) const = 0;

  /// Codec::write() of x - estimate; the estimate moves by what the receiver sees. When it throws, the
  /// estimate has the bits that it had.
  virtual IndexSet write_difference(const at::Tensor& x, at::Tensor& estimate, const MessageContext& context,
                                    ByteWriter& out) const = 0;

  /// Codec::read(), by which the estimate moves. When it throws, the estimate is undefined.
  virtual IndexSet read_difference(ByteReader& in, at::Tensor& estimate,
                                   const MessageContext& context) const = 0;

  /// Whether these are there for messages of this shape, of which something is kept and something not.
  bool is_partial(const MessageMeta& meta) const {
    const SparseShape shape = shape_of(meta);
    return meta.elements() > 0 && shape.k > 0 && shape.k < shape.n;
  }
};

}  // namespace strait
