#include "strait/kernels/quantise.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "strait/kernels/pack.h"

namespace strait::kernels {
namespace {

// Elements between the passes "compute codes" and "pack"; a multiple of 8, small enough for registers
// and first-level cache.
constexpr size_t kBlock = 512;

/// Floats as integers of the same order: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN.
inline int32_t ordered(float value) {
  const auto bits = std::bit_cast<int32_t>(value);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}

inline float from_ordered(int32_t order) { return std::bit_cast<float>(order ^ ((order >> 31) & 0x7fffffff)); }

/// Calls `work` with the number of bits as a compile-time constant.
template <class Work>
void with_bits(unsigned bits, Work work) {
  switch (bits) {
    case 1:
      return work(std::integral_constant<unsigned, 1>());
    case 2:
      return work(std::integral_constant<unsigned, 2>());
    case 3:
      return work(std::integral_constant<unsigned, 3>());
    case 4:
      return work(std::integral_constant<unsigned, 4>());
    case 5:
      return work(std::integral_constant<unsigned, 5>());
    case 6:
      return work(std::integral_constant<unsigned, 6>());
    case 7:
      return work(std::integral_constant<unsigned, 7>());
    default:
      return work(std::integral_constant<unsigned, 8>());
  }
}

/// Packs `count` codes, one a byte; the array is zero from `count` to the next multiple of 8.
template <unsigned b>
void pack(const uint8_t* codes, size_t count, std::byte* out) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8, out += b) {
    uint64_t word;
    std::memcpy(&word, codes + i, sizeof(word));
    word = pack8<b>(word);
    std::memcpy(out, &word, b);
  }
  if (i < count) {
    uint64_t word;
    std::memcpy(&word, codes + i, sizeof(word));
    word = pack8<b>(word);
    std::memcpy(out, &word, packed_size(count - i, b));
  }
}

template <unsigned b>
void unpack(const std::byte* in, size_t count, uint8_t* codes) {
  size_t i = 0;
  // A load of 8 bytes, where the codes are that long, costs less than one of exactly b.
  for (; i + 64 <= count; i += 8, in += b) {
    uint64_t word;
    std::memcpy(&word, in, sizeof(word));
    word = unpack8<b>(word);
    std::memcpy(codes + i, &word, sizeof(word));
  }
  for (; i + 8 <= count; i += 8, in += b) {
    uint64_t word = 0;
    std::memcpy(&word, in, b);
    word = unpack8<b>(word);
    std::memcpy(codes + i, &word, sizeof(word));
  }
  if (i < count) {
    uint64_t word = 0;
    std::memcpy(&word, in, packed_size(count - i, b));
    word = unpack8<b>(word);
    std::memcpy(codes + i, &word, sizeof(word));
  }
}

/// x mapped to [0, levels]. A group of equal elements is all zeros, whatever the divisor.
struct Scale {
  Scale(Range range, unsigned bits)
      : lo(range.lo),
        divisor(range.hi == range.lo ? 1.0F : range.hi - range.lo),
        levels(static_cast<float>((1U << bits) - 1)) {}

  float operator()(float x) const { return ((x - lo) / divisor) * levels; }

  float lo;
  float divisor;
  float levels;
};

/// Codes block by block with `codes_of(begin, count, codes)`, then packs them.
template <class CodesOf>
void quantise_blocks(size_t size, unsigned bits, std::span<std::byte> out, CodesOf codes_of) {
  with_bits(bits, [&](auto constant) {
    constexpr unsigned kBits = decltype(constant)::value;
    alignas(64) std::array<uint8_t, kBlock + 8> codes;
    for (size_t begin = 0; begin < size; begin += kBlock) {
      const size_t count = std::min(kBlock, size - begin);
      codes_of(begin, count, codes.data());
      std::fill_n(codes.data() + count, 8, uint8_t{0});
      pack<kBits>(codes.data(), count, out.data() + begin / 8 * kBits);
    }
  });
}

}  // namespace

Range range_of(std::span<const float> x) {
  int32_t least = ordered(x[0]);
  int32_t greatest = least;
  for (const float value : x) {
    const int32_t order = ordered(value);
    least = std::min(least, order);
    greatest = std::max(greatest, order);
  }
  // Adding +0 turns -0 into +0 and changes nothing else.
  return {from_ordered(least) + 0.0F, from_ordered(greatest) + 0.0F};
}

bool is_usable(Range range) {
  return std::isfinite(range.lo) && std::isfinite(range.hi) && std::isfinite(range.hi - range.lo);
}

void quantise(std::span<const float> x, Range range, unsigned bits, std::span<std::byte> out) {
  const Scale scale(range, bits);
  quantise_blocks(x.size(), bits, out, [&](size_t begin, size_t count, uint8_t* codes) {
    for (size_t i = 0; i < count; ++i) {
      // In [2^23, 2^24) floats are integers: the addition rounds half to even.
      codes[i] = static_cast<uint8_t>(std::bit_cast<uint32_t>(scale(x[begin + i]) + 0x1p23F));
    }
  });
}

void quantise_stochastic(std::span<const float> x, Range range, unsigned bits, Dither dither,
                         std::span<std::byte> out) {
  const Scale scale(range, bits);
  quantise_blocks(x.size(), bits, out, [&](size_t begin, size_t count, uint8_t* codes) {
    for (size_t i = 0; i < count; ++i) {
      const float t = scale(x[begin + i]);
      const auto floor = static_cast<int32_t>(t);
      const float rest = t - static_cast<float>(floor);
      const int32_t up = dither_at(dither, dither.first_index + begin + i) < rest ? 1 : 0;
      codes[i] = static_cast<uint8_t>(floor + up);
    }
  });
}

void dequantise(std::span<const std::byte> in, Range range, unsigned bits, std::span<float> out) {
  const float extent = range.hi - range.lo;
  const auto levels = static_cast<float>((1U << bits) - 1);
  with_bits(bits, [&](auto constant) {
    constexpr unsigned kBits = decltype(constant)::value;
    alignas(64) std::array<uint8_t, kBlock + 8> codes;
    for (size_t begin = 0; begin < out.size(); begin += kBlock) {
      const size_t count = std::min(kBlock, out.size() - begin);
      unpack<kBits>(in.data() + begin / 8 * kBits, count, codes.data());
      for (size_t i = 0; i < count; ++i) {
        out[begin + i] = range.lo + (static_cast<float>(codes[i]) / levels) * extent;
      }
    }
  });
}

}  // namespace strait::kernels
