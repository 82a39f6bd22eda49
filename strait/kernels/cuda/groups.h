#pragma once

#include <cstdint>

#include "strait/kernels/cuda/host_device.h"

namespace strait::kernels::cuda {

/// Where a group of a Layout stands.
struct Place {
  uint64_t begin = 0;      ///< its first element, among those of the message
  uint64_t size = 0;       ///< its elements
  uint64_t code_byte = 0;  ///< its first byte, among those of all codes
};

/// How a message falls into groups (kernels/quantise.h packs the codes of one): `rows` rows of `row_size`
/// elements, row-major, and each row into groups of `group_size`, the last of which may be short. Requires all
/// to be 1 or more, and group_size to be a multiple of 8 or the row's size. Codes of b bits are one bit stream
/// a row, which begins on a byte.
struct Layout {
  uint64_t rows = 0;        ///< 1 for one group of the whole message
  uint64_t row_size = 0;    ///< elements
  uint64_t group_size = 0;  ///< elements of a group that is not short

  /// Groups of a row.
  constexpr uint64_t groups_a_row() const { return (row_size + group_size - 1) / group_size; }

  /// Groups of the message.
  constexpr uint64_t groups() const { return rows * groups_a_row(); }

  /// Elements of the message.
  constexpr uint64_t elements() const { return rows * row_size; }

  /// Eights of elements of a row, the last of which may be short.
  constexpr uint64_t octets_a_row() const { return (row_size + 7) / 8; }

  /// Bytes of a row's codes.
  constexpr uint64_t row_bytes(uint32_t bits) const { return (row_size * bits + 7) / 8; }

  /// Bytes of all codes.
  constexpr uint64_t code_bytes(uint32_t bits) const { return rows * row_bytes(bits); }
};

/// Division by a number that is known before a launch, which takes a multiplication (T. Granlund and P.
/// Montgomery, "Division by invariant integers using multiplication", 1994, figure 4.1).
class WholeDivision {
 public:
  /// By 1 to 2^32 - 1.
  constexpr explicit WholeDivision(uint32_t by) : by_(by) {
    uint32_t log2 = 0;
    while (log2 < 32 && (uint64_t{1} << log2) < by) ++log2;
    factor_ = static_cast<uint32_t>(((uint64_t{1} << 32) * ((uint64_t{1} << log2) - by)) / by + 1);
    first_shift_ = log2 == 0 ? 0 : 1;
    second_shift_ = log2 == 0 ? 0 : log2 - 1;
  }
  /// By what.
  constexpr uint32_t by() const { return by_; }
  /// The quotient, rounded down.
  constexpr uint32_t of(uint32_t n) const {
    const auto high = static_cast<uint32_t>(uint64_t{factor_} * n >> 32);
    return (high + ((n - high) >> first_shift_)) >> second_shift_;
  }

 private:
  uint32_t by_;
  uint32_t factor_ = 0;
  uint32_t first_shift_ = 0;
  uint32_t second_shift_ = 0;
};

/// The places of a Layout's groups and octets, of which each are below 2^32.
class Places {
 public:
  /// Of a layout that fits().
  constexpr explicit Places(const Layout& layout)
      : layout_(folded(layout)),
        groups_(static_cast<uint32_t>(layout_.groups())),
        groups_a_row_(static_cast<uint32_t>(layout_.groups_a_row())),
        octets_a_row_(static_cast<uint32_t>(layout_.octets_a_row())),
        octets_a_group_(static_cast<uint32_t>((layout_.group_size + 7) / 8)) {}

  /// Whether all numbers are below 2^32, as they are of what fits the memory of a device.
  static constexpr bool fits(const Layout& layout) {
    return layout.rows * layout.octets_a_row() < uint64_t{1} << 32;
  }

  /// Elements of a group that is not short.
  constexpr uint64_t group_size() const { return layout_.group_size; }

  /// Groups of the message.
  constexpr uint32_t groups() const { return groups_; }

  /// Octets of all rows.
  constexpr uint64_t octets() const { return octets_a_row_.by() * layout_.rows; }

  /// Group `number`, below groups(), with codes of `bits` bits.
  constexpr Place group(uint32_t number, uint32_t bits) const {
    const uint32_t row = layout_.rows == 1 ? 0 : groups_a_row_.of(number);
    const uint64_t begin = (number - row * groups_a_row_.by()) * layout_.group_size;
    return {row * layout_.row_size + begin, least_of(layout_.group_size, layout_.row_size - begin),
            row * layout_.row_bytes(bits) + begin / 8 * bits};
  }

  /// An octet of a row.
  struct Octet {
    uint32_t count = 0;      ///< its elements; 0 for one that is not there
    uint32_t group = 0;      ///< to which it belongs
    uint64_t begin = 0;      ///< its first element, among those of the message
    uint64_t code_byte = 0;  ///< its first byte, among those of all codes
  };

  /// Octet `number` of octets(), with codes of `bits` bits.
  constexpr Octet octet(uint64_t number, uint32_t bits) const {
    if (number >= octets()) return {};
    const auto of_all = static_cast<uint32_t>(number);
    const uint32_t row = layout_.rows == 1 ? 0 : octets_a_row_.of(of_all);
    const uint32_t of_row = of_all - row * octets_a_row_.by();
    const uint64_t before = uint64_t{of_row} * 8;
    return {static_cast<uint32_t>(least_of<uint64_t>(layout_.row_size - before, 8)),
            row * groups_a_row_.by() + octets_a_group_.of(of_row), row * layout_.row_size + before,
            row * layout_.row_bytes(bits) + uint64_t{of_row} * bits};
  }

 private:
  /// The same groups, in one row where that makes no difference, so that a place takes no division.
  static constexpr Layout folded(const Layout& layout) {
    const bool is_same = layout.row_size % layout.group_size == 0 && layout.row_size % 8 == 0;
    return is_same ? Layout{1, layout.elements(), layout.group_size} : layout;
  }

  Layout layout_;
  uint32_t groups_;
  WholeDivision groups_a_row_;
  WholeDivision octets_a_row_;
  WholeDivision octets_a_group_;
};

}  // namespace strait::kernels::cuda
