#include "strait/kernels/quantise.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "strait/kernels/prefetch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "strait/kernels/quantise.cpp"
#include <hwy/foreach_target.h>  // includes this file once for each target
#include <hwy/highway.h>

#include "strait/kernels/codes-inl.h"
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

// Elements of the next group that are asked for ahead. A quarter of a group is short: what is asked for past
// its end is asked for in vain.
constexpr size_t kNextAhead = 512;

/// Floats as integers of the same order: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN.
inline int32_t ordered(float value) {
  const auto bits = std::bit_cast<int32_t>(value);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}

inline float from_ordered(int32_t order) { return std::bit_cast<float>(order ^ ((order >> 31) & 0x7fffffff)); }

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

/// The least and the greatest of the elements seen so far, as integers of the same order.
class RangeFinder {
 public:
  RangeFinder()
      : least_(hn::Set(Integers(), std::numeric_limits<int32_t>::max())),
        greatest_(hn::Set(Integers(), std::numeric_limits<int32_t>::min())) {}

  /// Looks at kLanes elements.
  HWY_INLINE void see(const float* x) {
    const auto bits = hn::BitCast(Integers(), hn::LoadU(Floats(), x));
    see_ordered(hn::Xor(bits, hn::And(hn::ShiftRight<31>(bits), hn::Set(Integers(), 0x7fffffff))));
  }

  void see_all(std::span<const float> x) {
    const size_t whole = x.size() - x.size() % kLanes;
    for (size_t i = 0; i < whole; i += kLanes) {
      prefetch(x.data() + i + kNextAhead);
      see(x.data() + i);
    }
    for (const float value : x.subspan(whole)) see_ordered(hn::Set(Integers(), ordered(value)));
  }

  /// Requires that one was seen. Adding +0 turns -0 into +0 and changes nothing else.
  Range range() const {
    return {from_ordered(hn::GetLane(hn::MinOfLanes(Integers(), least_))) + 0.0F,
            from_ordered(hn::GetLane(hn::MaxOfLanes(Integers(), greatest_))) + 0.0F};
  }

 private:
  HWY_INLINE void see_ordered(hn::Vec<Integers> order) {
    least_ = hn::Min(least_, order);
    greatest_ = hn::Max(greatest_, order);
  }

  hn::Vec<Integers> least_;
  hn::Vec<Integers> greatest_;
};

/// `count` elements of a group from `begin`, and as many of the next group, or fewer, at the same place.
struct Block {
  size_t begin;
  size_t count;
  std::span<const float> beside;
};

/// Codes with `finder = codes_of(block, codes, finder)`, which also shows the finder what is beside the block,
/// and packs them: blocks at several places in turn, then the few that are left. Returns the range of `next`.
template <class CodesOf>
Range quantise_blocks(size_t size, unsigned bits, std::span<std::byte> out, std::span<const float> next,
                      const CodesOf& codes_of) {
  const PackBlock pack_block = packer_of(bits);
  RangeFinder finder;
  const size_t each = size / kBlock / kStreams;
  for (size_t i = 0; i * kBlock < size; ++i) {
    const size_t begin = (i < each * kStreams ? i % kStreams * each + i / kStreams : i) * kBlock;
    const size_t count = std::min(kBlock, size - begin);
    const auto beside = next.subspan(std::min(begin, next.size()));
    alignas(64) Codes codes;
    finder = codes_of(Block{begin, count, beside.first(std::min(count, beside.size()))}, codes.data(), finder);
    pack_block(codes, count, out.data() + begin / 8 * bits);
  }
  if (next.empty()) return {};
  finder.see_all(next.subspan(std::min(size, next.size())));
  return finder.range();
}

}  // namespace

Range range_of(std::span<const float> x) {
  RangeFinder finder;
  const size_t each = x.size() / kStreams / kLanes * kLanes;
  for (size_t i = 0; i < each; i += kLanes) {
    for (size_t stream = 0; stream < kStreams; ++stream) {
      prefetch(x.data() + stream * each + i + kAhead);
      finder.see(x.data() + stream * each + i);
    }
  }
  finder.see_all(x.subspan(each * kStreams));
  return finder.range();
}

// A product with the inverse is quicker than the division but may round to another code. So there are two: with
// an inverse that is a little too small and one that is a little too large. Where both round to the same code,
// so does the division, for rounding keeps the order; a block in which they do not is divided.
Range quantise(std::span<const float> x, Range range, unsigned bits, std::span<std::byte> out,
               std::span<const float> next) {
  // Quotient and product, the inverse itself, the product with it and this factor: 5 roundings of 2^-24.
  constexpr float kMargin = 0x1p-21F;
  const Scale scale(range, bits);
  const float inverse = scale.levels / scale.divisor;
  const auto lo = hn::Set(Floats(), scale.lo);
  const auto less = hn::Set(Floats(), inverse * (1 - kMargin));
  const auto more = hn::Set(Floats(), inverse * (1 + kMargin));
  // In [2^23, 2^24) floats are integers: adding rounds half to even.
  const auto magic = hn::Set(Floats(), 0x1p23F);
  return quantise_blocks(
      x.size(), bits, out, next, [=](Block block, uint8_t* codes, RangeFinder finder) HWY_ATTR {
        const float* const from = x.data() + block.begin;
        const float* const ahead = block.beside.empty() ? from + kAhead : block.beside.data() + kNextAhead;
        auto differ = hn::Set(Integers(), std::isnormal(inverse) ? 0 : 1);
        const size_t whole = block.count - block.count % kLanes;
        const size_t seen = block.beside.size() - block.beside.size() % kLanes;
        for (size_t i = 0; i < whole; i += kLanes) {
          prefetch(ahead + i);
          if (i < seen) finder.see(block.beside.data() + i);
          const auto above = hn::Sub(hn::LoadU(Floats(), from + i), lo);
          const auto rounded = hn::BitCast(Integers(), hn::MulAdd(above, less, magic));
          const auto other = hn::BitCast(Integers(), hn::MulAdd(above, more, magic));
          differ = hn::Or(differ, hn::Xor(rounded, other));
          hn::StoreU(hn::TruncateTo(Bytes(), hn::BitCast(Unsigned(), rounded)), Bytes(), codes + i);
        }
        finder.see_all(block.beside.subspan(seen));
        const bool divide = !hn::AllTrue(Integers(), hn::Eq(differ, hn::Zero(Integers())));
        for (size_t i = divide ? 0 : whole; i < block.count; ++i) {
          codes[i] = static_cast<uint8_t>(std::bit_cast<uint32_t>(scale(from[i]) + 0x1p23F));
        }
        return finder;
      });
}

// t less the dither, rounded up, in units of 2^-23. As above the product with the inverse stands for the
// division, and its error is bounded: a block in which a sum is so close to an integer that it matters is
// divided.
Range quantise_stochastic(std::span<const float> x, Range range, unsigned bits, Dither dither,
                          std::span<std::byte> out, std::span<const float> next) {
  constexpr unsigned kFraction = 23;
  constexpr uint32_t kUnit = uint32_t{1} << kFraction;
  const Scale scale(range, bits);
  const float quotient = scale.levels * static_cast<float>(kUnit) / scale.divisor;
  const float inverse = std::isnormal(quotient) ? quotient : 0.0F;  // 0: there is none
  // Quotient and product, the inverse and the product with it: 4 roundings of 2^-24, or 2 units a level. The
  // cut to whole units and the dither's last bit are less than one each.
  const uint32_t margin = 2 * static_cast<uint32_t>(scale.levels) + 2;
  return quantise_blocks(
      x.size(), bits, out, next, [=](Block block, uint8_t* codes, RangeFinder finder) HWY_ATTR {
        finder.see_all(block.beside);
        const float* const from = x.data() + block.begin;
        const auto count = static_cast<uint32_t>(block.count);
        for (uint32_t i = 0; i < count; i += 16) prefetch(from + i + kAhead);
        const uint64_t first = dither.first_index + block.begin;
        const auto low = static_cast<uint32_t>(first);
        const uint32_t key1 = dither.key1 + static_cast<uint32_t>(first >> 32) * kDitherHighFactor;
        uint32_t closest = kUnit;
        for (uint32_t i = 0; i < count; ++i) {
          const uint32_t hash = lowbias32(lowbias32((low + i) ^ dither.key0) + key1);
          const auto t = static_cast<uint32_t>(static_cast<int32_t>((from[i] - scale.lo) * inverse));
          const uint32_t sum = t + (kUnit - 1 + margin) - (hash >> (32 - kFraction));
          codes[i] = static_cast<uint8_t>(sum >> kFraction);
          closest = std::min(closest, sum % kUnit);
        }
        const bool wraps = low + count < low;
        if (inverse != 0 && !wraps && closest >= 2 * margin) return finder;
        for (uint32_t i = 0; i < count; ++i) {
          const float rise = scale(from[i]);
          const auto floor = static_cast<int32_t>(rise);
          const float rest = rise - static_cast<float>(floor);
          codes[i] = static_cast<uint8_t>(floor + (dither_at(dither, first + i) < rest ? 1 : 0));
        }
        return finder;
      });
}

void dequantise(std::span<const std::byte> in, Range range, unsigned bits, std::span<float> out) {
  const float extent = range.hi - range.lo;
  const auto levels = static_cast<float>((1U << bits) - 1);
  const UnpackBlock unpack_block = unpacker_of(bits);
  alignas(64) Codes codes;
  for (size_t begin = 0; begin < out.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, out.size() - begin);
    unpack_block(in.data() + begin / 8 * bits, count, codes);
    for (size_t i = 0; i < count; i += 16) prefetch(out.data() + begin + i + kAhead);
    for (size_t i = 0; i < count; ++i) {
      out[begin + i] = range.lo + (static_cast<float>(codes[i]) / levels) * extent;
    }
  }
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
  return std::isfinite(range.lo) && std::isfinite(range.hi) && std::isfinite(range.lo + (range.hi - range.lo));
}

Range quantise(std::span<const float> x, Range range, unsigned bits, std::span<std::byte> out,
               std::span<const float> next) {
  return STRAIT_KERNEL(quantise)(x, range, bits, out, next);
}

Range quantise_stochastic(std::span<const float> x, Range range, unsigned bits, Dither dither,
                          std::span<std::byte> out, std::span<const float> next) {
  return STRAIT_KERNEL(quantise_stochastic)(x, range, bits, dither, out, next);
}

void dequantise(std::span<const std::byte> in, Range range, unsigned bits, std::span<float> out) {
  STRAIT_KERNEL(dequantise)(in, range, bits, out);
}

}  // namespace strait::kernels
#endif
