// Blocks of codes and their packed form, once for each target.

#if defined(STRAIT_KERNELS_CODES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef STRAIT_KERNELS_CODES_INL
#undef STRAIT_KERNELS_CODES_INL
#else
#define STRAIT_KERNELS_CODES_INL
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "strait/kernels/pack.h"
#include "strait/kernels/quantise.h"

HWY_BEFORE_NAMESPACE();
namespace strait::kernels::HWY_NAMESPACE {

// Elements between the passes "compute codes" and "pack"; a multiple of 8, small enough for registers
// and first-level cache.
constexpr size_t kBlock = 512;

/// The codes of a block, one per byte.
using Codes = std::array<uint8_t, kBlock>;

/// Eight codes, one per byte, in each word.
using Words = std::array<uint64_t, kBlock / 8>;

/// Whether 8 codes of b bits are an unsigned integer, of this type.
template <unsigned b>
constexpr bool kIsInteger = std::has_single_bit(b);
template <unsigned b>
using Packed8 =
    std::conditional_t<b == 1, uint8_t,
                       std::conditional_t<b == 2, uint16_t, std::conditional_t<b == 4, uint32_t, uint64_t>>>;

/// Packs the first `count` codes of a block, 1 <= count <= kBlock; those behind them become zero.
template <unsigned b>
void pack_codes(Codes& codes, size_t count, std::byte* out) {
  alignas(64) Words words;
  const size_t used = (count + 7) / 8;
  for (size_t i = count; i < 8 * used; ++i) codes[i] = 0;
  std::memcpy(words.data(), codes.data(), 8 * used);
  for (size_t i = 0; i < used; ++i) words[i] = pack8<b>(words[i]);
  const size_t bytes = packed_size(count, b);
  if constexpr (kIsInteger<b>) {
    alignas(64) std::array<Packed8<b>, kBlock / 8> packed;
    for (size_t i = 0; i < used; ++i) packed[i] = static_cast<Packed8<b>>(words[i]);
    std::memcpy(out, packed.data(), bytes);
  } else {
    // A store of 8 bytes, where the next ones overwrite what is too much, costs less than one of exactly b.
    size_t i = 0;
    for (; i * b + sizeof(uint64_t) <= bytes; ++i) std::memcpy(out + i * b, &words[i], sizeof(uint64_t));
    for (; i * b < bytes; ++i) std::memcpy(out + i * b, &words[i], std::min<size_t>(b, bytes - i * b));
  }
}

/// The way back; what is behind the last byte's codes is undefined.
template <unsigned b>
void unpack_codes(const std::byte* in, size_t count, Codes& codes) {
  alignas(64) Words words;
  const size_t used = (count + 7) / 8;
  const size_t bytes = packed_size(count, b);
  if constexpr (kIsInteger<b>) {
    alignas(64) std::array<Packed8<b>, kBlock / 8> packed;
    packed[used - 1] = 0;
    std::memcpy(packed.data(), in, bytes);
    for (size_t i = 0; i < used; ++i) words[i] = packed[i];
  } else {
    size_t i = 0;
    for (; i * b + sizeof(uint64_t) <= bytes; ++i) std::memcpy(&words[i], in + i * b, sizeof(uint64_t));
    for (; i * b < bytes; ++i) {
      words[i] = 0;
      std::memcpy(&words[i], in + i * b, std::min<size_t>(b, bytes - i * b));
    }
  }
  for (size_t i = 0; i < used; ++i) words[i] = unpack8<b>(words[i]);
  std::memcpy(codes.data(), words.data(), 8 * used);
}

// The calls that depend on the bits, once a block; so the rest is compiled once.
using PackBlock = void (*)(Codes&, size_t, std::byte*);
using UnpackBlock = void (*)(const std::byte*, size_t, Codes&);

/// pack_codes() of `bits`, 1 to 8.
inline PackBlock packer_of(unsigned bits) {
  constexpr std::array<PackBlock, 8> kAll = {&pack_codes<1>, &pack_codes<2>, &pack_codes<3>, &pack_codes<4>,
                                             &pack_codes<5>, &pack_codes<6>, &pack_codes<7>, &pack_codes<8>};
  return kAll[bits - 1];
}

/// unpack_codes() of `bits`, 1 to 8.
inline UnpackBlock unpacker_of(unsigned bits) {
  constexpr std::array<UnpackBlock, 8> kAll = {&unpack_codes<1>, &unpack_codes<2>, &unpack_codes<3>,
                                               &unpack_codes<4>, &unpack_codes<5>, &unpack_codes<6>,
                                               &unpack_codes<7>, &unpack_codes<8>};
  return kAll[bits - 1];
}

/// Random numbers of a block, in units of 2^-24.
using Draws = std::array<int32_t, kBlock>;

/// The dither of `count` elements from index `first` on.
HWY_INLINE void draw(Dither dither, uint64_t first, size_t count, Draws& out) {
  const auto low = static_cast<uint32_t>(first);
  const uint32_t key1 = dither.key1 + static_cast<uint32_t>(first >> 32) * kDitherHighFactor;
  const auto until_wrap = static_cast<size_t>(std::min<uint64_t>(count, (uint64_t{1} << 32) - low));
  const auto part = static_cast<uint32_t>(until_wrap);
  for (uint32_t i = 0; i < part; ++i) {
    out[i] = static_cast<int32_t>(lowbias32(lowbias32((low + i) ^ dither.key0) + key1) >> 8);
  }
  const uint32_t next_key1 = key1 + kDitherHighFactor;
  for (size_t i = until_wrap; i < count; ++i) {
    const auto index = static_cast<uint32_t>(i - until_wrap);
    out[i] = static_cast<int32_t>(lowbias32(lowbias32(index ^ dither.key0) + next_key1) >> 8);
  }
}

}  // namespace strait::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
