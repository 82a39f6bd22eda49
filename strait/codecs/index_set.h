#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace strait {

/// A payload of `groups` groups of `n` elements of which `k` each are sent: k <= n, 1 <= n < 2^32. A group is
/// rows of `width` elements, of which the last may be cut short; width >= 1.
struct SparseShape {
  size_t groups = 0;  ///< in the message
  size_t n = 0;       ///< elements of a group
  size_t k = 0;       ///< of them sent
  size_t width = 1;   ///< elements of a row

  size_t mask_words() const;  ///< 64-bit words of one group's mask (kernels/select.h)

  /// A group's elements of all.
  template <class Element>
  std::span<Element> part(std::span<Element> all, size_t group) const {
    return all.subspan(group * n, n);
  }

  bool operator==(const SparseShape&) const = default;
};

/// The indices of the elements that a message keeps.
struct IndexSet {
  SparseShape shape;            ///< of the message
  std::vector<uint64_t> masks;  ///< mask_words() words for each group; empty when k == n, which keeps all

  /// Room for the indices of such a payload, in the memory that is there.
  void reset(const SparseShape& new_shape);

  /// The group's mask, mask_words() words; none where k == n.
  std::span<uint64_t> mask(size_t group);

  /// The same, to read.
  std::span<const uint64_t> mask(size_t group) const;
};

}  // namespace strait
