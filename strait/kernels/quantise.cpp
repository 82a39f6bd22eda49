#include "strait/kernels/quantise.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "strait/kernels/pack.h"
#include "strait/kernels/prefetch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "strait/kernels/quantise.cpp"
#include <hwy/foreach_target.h>  // includes this file once for each target
#include <hwy/highway.h>

#include "strait/kernels/dispatch.h"

// Where the intrinsics are not needed, plain loops, which the compiler turns into the target's vector
// instructions.
HWY_BEFORE_NAMESPACE();
namespace strait::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Integers = hn::ScalableTag<int32_t>;
using Unsigned = hn::RebindToUnsigned<Floats>;
using Bytes = hn::Rebind<uint8_t, Floats>;

constexpr size_t kLanes = HWY_LANES(float);
constexpr size_t kStreams = 4;  // places at which a group is read at once, which memory serves faster

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

/// Eight codes, one a byte, in each word.
using Words = std::array<uint64_t, kBlock / 8>;

/// Whether 8 codes of b bits are an unsigned integer, of this type.
template <unsigned b>
constexpr bool kIsInteger = std::has_single_bit(b);
template <unsigned b>
using Packed8 =
    std::conditional_t<b == 1, uint8_t,
                       std::conditional_t<b == 2, uint16_t, std::conditional_t<b == 4, uint32_t, uint64_t>>>;

/// Packs the codes of a block, `count` of which are wanted.
template <unsigned b>
void pack(Words& words, size_t count, std::byte* out) {
  for (auto& word : words) word = pack8<b>(word);
  const size_t bytes = packed_size(count, b);
  if constexpr (kIsInteger<b>) {
    alignas(64) std::array<Packed8<b>, kBlock / 8> packed;
    for (size_t i = 0; i < words.size(); ++i) packed[i] = static_cast<Packed8<b>>(words[i]);
    std::memcpy(out, packed.data(), bytes);
  } else {
    // A store of 8 bytes, where the next ones overwrite what is too much, costs less than one of exactly b.
    size_t i = 0;
    for (; i * b + sizeof(uint64_t) <= bytes; ++i) std::memcpy(out + i * b, &words[i], sizeof(uint64_t));
    for (; i * b < bytes; ++i) std::memcpy(out + i * b, &words[i], std::min<size_t>(b, bytes - i * b));
  }
}

/// The way back.
template <unsigned b>
void unpack(const std::byte* in, size_t count, Words& words) {
  const size_t bytes = packed_size(count, b);
  if constexpr (kIsInteger<b>) {
    alignas(64) std::array<Packed8<b>, kBlock / 8> packed{};
    std::memcpy(packed.data(), in, bytes);
    for (size_t i = 0; i < words.size(); ++i) words[i] = packed[i];
  } else {
    size_t i = 0;
    for (; i * b + sizeof(uint64_t) <= bytes; ++i) std::memcpy(&words[i], in + i * b, sizeof(uint64_t));
    for (; i * b < bytes; ++i) {
      words[i] = 0;
      std::memcpy(&words[i], in + i * b, std::min<size_t>(b, bytes - i * b));
    }
  }
  for (auto& word : words) word = unpack8<b>(word);
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

/// Codes block by block with `codes_of(begin, count, codes)`, then packs them: at several places at once, then
/// the few that are left.
template <class CodesOf>
void quantise_blocks(size_t size, unsigned bits, std::span<std::byte> out, const CodesOf& codes_of) {
  with_bits(bits, [&](auto constant) {
    constexpr unsigned kBits = decltype(constant)::value;
    const auto block = [&](size_t begin) HWY_ATTR {
      alignas(64) std::array<uint8_t, kBlock> codes;
      alignas(64) Words words;
      const size_t count = std::min(kBlock, size - begin);
      codes_of(begin, count, codes.data());
      if (count < kBlock) std::fill(codes.begin() + static_cast<ptrdiff_t>(count), codes.end(), uint8_t{0});
      std::memcpy(words.data(), codes.data(), sizeof(words));
      pack<kBits>(words, count, out.data() + begin / 8 * kBits);
    };
    const size_t each = size / kBlock / kStreams * kBlock;
    for (size_t i = 0; i < each; i += kBlock) {
      for (size_t stream = 0; stream < kStreams; ++stream) block(stream * each + i);
    }
    for (size_t begin = each * kStreams; begin < size; begin += kBlock) block(begin);
  });
}

}  // namespace

Range range_of(std::span<const float> x) {
  const size_t each = x.size() / kStreams / kLanes * kLanes;
  const auto order_at = [&](size_t i) HWY_ATTR {
    const auto bits = hn::BitCast(Integers(), hn::LoadU(Floats(), x.data() + i));
    return hn::Xor(bits, hn::And(hn::ShiftRight<31>(bits), hn::Set(Integers(), 0x7fffffff)));
  };
  const auto first = hn::Set(Integers(), ordered(x[0]));
  hn::Vec<Integers> least[kStreams] = {first, first, first, first};
  hn::Vec<Integers> greatest[kStreams] = {first, first, first, first};
  for (size_t i = 0; i < each; i += kLanes) {
    for (size_t stream = 0; stream < kStreams; ++stream) {
      prefetch(x.data() + stream * each + i + kAhead);
      const auto order = order_at(stream * each + i);
      least[stream] = hn::Min(least[stream], order);
      greatest[stream] = hn::Max(greatest[stream], order);
    }
  }
  const auto low = hn::Min(hn::Min(least[0], least[1]), hn::Min(least[2], least[3]));
  const auto high = hn::Max(hn::Max(greatest[0], greatest[1]), hn::Max(greatest[2], greatest[3]));
  int32_t lo = hn::GetLane(hn::MinOfLanes(Integers(), low));
  int32_t hi = hn::GetLane(hn::MaxOfLanes(Integers(), high));
  for (size_t i = each * kStreams; i < x.size(); ++i) {
    lo = std::min(lo, ordered(x[i]));
    hi = std::max(hi, ordered(x[i]));
  }
  // Adding +0 turns -0 into +0 and changes nothing else.
  return {from_ordered(lo) + 0.0F, from_ordered(hi) + 0.0F};
}

// A product with the inverse is quicker than the division but may round to another code. So there are two: with
// an inverse that is a little too small and one that is a little too large. Where both round to the same code,
// so does the division, for rounding keeps the order; a block in which they do not is divided.
void quantise(std::span<const float> x, Range range, unsigned bits, std::span<std::byte> out) {
  // Quotient and product, the inverse itself, the product with it and this factor: 5 roundings of 2^-24.
  constexpr float kMargin = 0x1p-21F;
  const Scale scale(range, bits);
  const float inverse = scale.levels / scale.divisor;
  const auto lo = hn::Set(Floats(), scale.lo);
  const auto less = hn::Set(Floats(), inverse * (1 - kMargin));
  const auto more = hn::Set(Floats(), inverse * (1 + kMargin));
  // In [2^23, 2^24) floats are integers: adding rounds half to even.
  const auto magic = hn::Set(Floats(), 0x1p23F);
  // A small group is in the cache since its range was found. So memory can begin with the next one: with half
  // of it, for which there is time.
  const bool is_cached = x.size() <= size_t{1} << 17;
  const size_t ahead = is_cached ? x.size() : kAhead;
  const size_t wanted_of_64 = is_cached ? 32 : 64;
  quantise_blocks(x.size(), bits, out, [=](size_t begin, size_t count, uint8_t* codes) HWY_ATTR {
    const float* const from = x.data() + begin;
    auto differ = hn::Set(Integers(), std::isnormal(inverse) ? 0 : 1);
    const size_t whole = count - count % kLanes;
    for (size_t i = 0; i < whole; i += kLanes) {
      if (i % 64 < wanted_of_64) prefetch(from + i + ahead);
      const auto above = hn::Sub(hn::LoadU(Floats(), from + i), lo);
      const auto rounded = hn::BitCast(Integers(), hn::MulAdd(above, less, magic));
      const auto other = hn::BitCast(Integers(), hn::MulAdd(above, more, magic));
      differ = hn::Or(differ, hn::Xor(rounded, other));
      hn::StoreU(hn::TruncateTo(Bytes(), hn::BitCast(Unsigned(), rounded)), Bytes(), codes + i);
    }
    const bool divide = !hn::AllTrue(Integers(), hn::Eq(differ, hn::Zero(Integers())));
    for (size_t i = divide ? 0 : whole; i < count; ++i) {
      codes[i] = static_cast<uint8_t>(std::bit_cast<uint32_t>(scale(from[i]) + 0x1p23F));
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
    alignas(64) Words words{};
    alignas(64) std::array<uint8_t, kBlock> codes;
    for (size_t begin = 0; begin < out.size(); begin += kBlock) {
      const size_t count = std::min(kBlock, out.size() - begin);
      unpack<kBits>(in.data() + begin / 8 * kBits, count, words);
      std::memcpy(codes.data(), words.data(), sizeof(words));
      for (size_t i = 0; i < count; i += 16) prefetch(out.data() + begin + i + kAhead);
      for (size_t i = 0; i < count; ++i) {
        out[begin + i] = range.lo + (static_cast<float>(codes[i]) / levels) * extent;
      }
    }
  });
}

}  // namespace strait::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strait::kernels {

HWY_EXPORT(range_of);
HWY_EXPORT(quantise);
HWY_EXPORT(quantise_stochastic);
HWY_EXPORT(dequantise);

Range range_of(std::span<const float> x) { return STRAIT_KERNEL(range_of)(x); }

bool is_usable(Range range) {
  return std::isfinite(range.lo) && std::isfinite(range.hi) && std::isfinite(range.hi - range.lo);
}

void quantise(std::span<const float> x, Range range, unsigned bits, std::span<std::byte> out) {
  STRAIT_KERNEL(quantise)(x, range, bits, out);
}

void quantise_stochastic(std::span<const float> x, Range range, unsigned bits, Dither dither,
                         std::span<std::byte> out) {
  STRAIT_KERNEL(quantise_stochastic)(x, range, bits, dither, out);
}

void dequantise(std::span<const std::byte> in, Range range, unsigned bits, std::span<float> out) {
  STRAIT_KERNEL(dequantise)(in, range, bits, out);
}

}  // namespace strait::kernels
#endif
