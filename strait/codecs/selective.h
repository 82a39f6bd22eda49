#pragma once

#include <memory>

#include "strait/codecs/codec.h"
#include "strait/codecs/share.h"
#include "strait/codecs/sparse.h"

namespace strait {

/// What a codec can do besides that keeps, of every group of n elements, k and gives the others as 0.
class Selective {
 public:
  /// Which elements are kept; codecs of equal selections keep the same ones.
  struct Selection {
    Share share;
    bool per_sample = true;  ///< a sample is a group; otherwise the whole message is one

    bool operator==(const Selection&) const = default;
  };
  enum class Half { larger, smaller };

  virtual ~Selective() = default;
  virtual Selection selection() const = 0;

  /// The same operator with ceil(k / 2) or floor(k / 2) for k; the latter may keep nothing.
  virtual std::shared_ptr<const Codec> half(Half half) const = 0;

  /// The shape of a message's index set.
  virtual SparseShape shape_of(const MessageMeta& meta) const = 0;

  /// How the kept values are written.
  virtual const SparseFormat& format() const = 0;
};

}  // namespace strait
