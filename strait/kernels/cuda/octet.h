#pragma once

#include <cstdint>

namespace strait::kernels::cuda {

// Eight elements are the least part of a message whose codes end on a byte, whatever their bits; a thread has
// one such octet at a time. The last octet of a row may be short: the codes behind it are 0.

/// Elements of an octet.
constexpr uint32_t kOctet = 8;

/// Eight codes below 2^bits, 1 <= bits <= 8, in the low 8 * bits bits, the first one lowest.
constexpr uint64_t pack_octet(const uint32_t (&codes)[kOctet], uint32_t bits) {
  const uint32_t first = codes[0] | codes[1] << bits;
  const uint32_t second = codes[2] | codes[3] << bits;
  const uint32_t third = codes[4] | codes[5] << bits;
  const uint32_t fourth = codes[6] | codes[7] << bits;
  const uint32_t low = first | second << (2 * bits);
  const uint32_t high = third | fourth << (2 * bits);
  return low | static_cast<uint64_t>(high) << (4 * bits);
}

/// Of a packed octet the codes of the first `count` elements alone.
constexpr uint64_t first_codes(uint64_t packed, uint32_t count, uint32_t bits) {
  return count == kOctet ? packed : packed & ((uint64_t{1} << (count * bits)) - 1);
}

/// Code i of a packed octet.
constexpr uint32_t code_at(uint64_t packed, uint32_t i, uint32_t bits) {
  return static_cast<uint32_t>(packed >> (i * bits)) & ((1U << bits) - 1);
}

/// The bytes of the codes of `count` elements.
constexpr uint32_t octet_bytes(uint32_t count, uint32_t bits) { return (count * bits + 7) / 8; }

/// Whether the bits behind the codes of `count` elements are 0 in the last byte that these take.
constexpr bool is_padding_zero(uint64_t packed, uint32_t count, uint32_t bits) {
  return count == kOctet || packed >> (count * bits) == 0;
}

/// A word of packed octets of `bits` bytes each that follow each other, 3 <= bits: the four bytes from byte
/// `skipped` < bits of `own` on, of which those behind its end are of `next`.
constexpr uint32_t word_of(uint64_t own, uint64_t next, uint32_t skipped, uint32_t bits) {
  return static_cast<uint32_t>(own >> (8 * skipped) | next << (8 * (bits - skipped)));
}

}  // namespace strait::kernels::cuda
