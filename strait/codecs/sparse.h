#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "strait/base/bytes.h"
#include "strait/codecs/codec.h"
#include "strait/codecs/value_format.h"

namespace strait {

/// A payload of `groups` groups of `n` elements of which `k` each are sent: k <= n, 1 <= n < 2^32.
struct SparseShape {
  size_t groups = 0;
  size_t n = 0;
  size_t k = 0;

  size_t mask_words() const;  ///< 64-bit words of one group's mask (kernels/select.h)

  bool operator==(const SparseShape&) const = default;
};

/// The positions that a message keeps.
struct IndexSet {
  SparseShape shape;
  std::vector<uint64_t> masks;  ///< mask_words() words for each group; empty when k == n, which keeps all
};

/// How the set of positions is coded: automatic takes the code with fewer bytes, the bitmap when equal.
enum class IndexCode { automatic, bitmap, rice };

/// Writes and reads sparse payloads (docs/wire_format.md, "topk"): index sets, then values in the order of
/// their index. Stateless.
class SparseFormat {
 public:
  SparseFormat(IndexCode index, std::unique_ptr<const ValueFormat> values);

  PayloadSize size(const SparseShape& shape) const;

  /// `x` has groups * n elements; the masks have exactly k bits set below n. Throws NumericError when a
  /// marked value cannot be sent.
  void write(std::span<const float> x, const IndexSet& kept, ByteWriter& out) const;

  /// Fills all groups * n elements; those not sent become +0. Gives the positions. Throws WireError.
  IndexSet read(ByteReader& in, const SparseShape& shape, std::span<float> out) const;

  /// The same without the index sets, for a receiver that knows the positions.
  size_t values_size(const SparseShape& shape) const { return shape.groups * values_->size(shape.k); }
  void write_values(std::span<const float> x, const IndexSet& kept, ByteWriter& out) const;
  void read_values(ByteReader& in, const IndexSet& kept, std::span<float> out) const;

  const ValueFormat& values() const { return *values_; }

 private:
  size_t index_bound(const SparseShape& shape) const;
  void write_indices(const IndexSet& kept, ByteWriter& out) const;
  IndexSet read_indices(ByteReader& in, const SparseShape& shape) const;

  IndexCode index_;
  std::unique_ptr<const ValueFormat> values_;
};

}  // namespace strait
