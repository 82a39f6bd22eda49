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

  /// A layout of the same groups, in one row where that makes no difference, so that a place takes no division.
  constexpr Layout folded() const {
    if (row_size % group_size != 0 || row_size % 8 != 0) return *this;
    return {1, elements(), group_size};
  }

  /// Group `number`, below groups(), with codes of `bits` bits.
  constexpr Place place(uint64_t number, uint32_t bits) const {
    const uint64_t a_row = groups_a_row();
    const uint64_t row = rows == 1 ? 0 : number / a_row;
    const uint64_t begin = (number - row * a_row) * group_size;
    return {row * row_size + begin, least_of(group_size, row_size - begin),
            row * row_bytes(bits) + begin / 8 * bits};
  }
};

}  // namespace strait::kernels::cuda
