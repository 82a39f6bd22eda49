#include "strait/kernels/levels.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "strait/kernels/prefetch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "strait/kernels/levels.cpp"
#include <hwy/foreach_target.h>  // includes this file once for each target
#include <hwy/highway.h>

#include "strait/kernels/codes-inl.h"
#include "strait/kernels/dispatch.h"

// Plain loops, which the compiler turns into the target's vector instructions.
HWY_BEFORE_NAMESPACE();
namespace strait::kernels::HWY_NAMESPACE {
namespace {

// In [2^23, 2^24) floats are integers: adding rounds half to even. For both signs: [2^23 + 2^22, ...).
constexpr float kRounder = 0x1.8p23F;

/// Divides by the scale; 0 stands for 1.
float divisor_of(float scale) { return scale == 0 ? 1.0F : scale; }

/// Computes the codes of each block with codes_of(x, count, begin, codes), and packs them.
template <class CodesOf>
HWY_INLINE void in_blocks(std::span<const float> x, unsigned bits, std::span<std::byte> out,
                          const CodesOf& codes_of) {
  const PackBlock pack_block = packer_of(bits);
  alignas(64) Codes codes;
  for (size_t begin = 0; begin < x.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, x.size() - begin);
    for (size_t i = 0; i < count; i += 16) prefetch(x.data() + begin + i + kAhead);
    codes_of(x.data() + begin, count, begin, codes.data());
    pack_block(codes, count, out.data() + begin / 8 * bits);
  }
}

HWY_INLINE float magnitude_of(float x) { return std::bit_cast<float>(std::bit_cast<uint32_t>(x) & 0x7fffffff); }

/// l with the sign of x.
HWY_INLINE int32_t with_sign(int32_t level, float x) {
  const int32_t sign = std::bit_cast<int32_t>(x) >> 31;
  return (level ^ sign) - sign;
}

}  // namespace

void uniform_levels(std::span<const float> x, float scale, unsigned bits, std::span<std::byte> out) {
  const auto greatest = static_cast<float>(signed_levels(bits));
  const float divisor = divisor_of(scale);
  const uint32_t to_code = signed_levels(bits) - std::bit_cast<uint32_t>(kRounder);
  in_blocks(x, bits, out, [=](const float* from, size_t count, size_t /*begin*/, uint8_t* codes) HWY_ATTR {
    for (size_t i = 0; i < count; ++i) {
      codes[i] =
          static_cast<uint8_t>(std::bit_cast<uint32_t>(from[i] / divisor * greatest + kRounder) + to_code);
    }
  });
}

void uniform_levels_stochastic(std::span<const float> x, float scale, unsigned bits, Dither dither,
                               std::span<std::byte> out) {
  const auto greatest = static_cast<int32_t>(signed_levels(bits));
  const auto most = static_cast<float>(greatest);
  const float divisor = divisor_of(scale);
  in_blocks(x, bits, out, [=](const float* from, size_t count, size_t begin, uint8_t* codes) HWY_ATTR {
    alignas(64) Draws draws;
    draw(dither, dither.first_index + begin, count, draws);
    for (size_t i = 0; i < count; ++i) {
      const float raw = magnitude_of(from[i]) / divisor * most;
      const float t = raw < most ? raw : most;
      const auto floor = static_cast<int32_t>(t);
      const float rest = t - static_cast<float>(floor);
      const int32_t level = floor + (static_cast<float>(draws[i]) * 0x1p-24F < rest ? 1 : 0);
      codes[i] = static_cast<uint8_t>(with_sign(level, from[i]) + greatest);
    }
  });
}

void exponential_levels(std::span<const float> x, float scale, unsigned bits, Dither dither,
                        std::span<std::byte> out) {
  constexpr int32_t kBias = 127;
  const auto greatest = static_cast<int32_t>(signed_levels(bits));
  const float divisor = divisor_of(scale);
  const float to_least = std::ldexp(1.0F, greatest - 1);  // over the least level above 0
  in_blocks(x, bits, out, [=](const float* from, size_t count, size_t begin, uint8_t* codes) HWY_ATTR {
    alignas(64) Draws draws;
    draw(dither, dither.first_index + begin, count, draws);
    for (size_t i = 0; i < count; ++i) {
      const float t = magnitude_of(from[i]) / divisor;
      const auto t_bits = std::bit_cast<int32_t>(t);
      const int32_t lower = (t_bits >> 23) - kBias + greatest;  // of a level above 0
      const float mantissa = std::bit_cast<float>((t_bits & 0x7fffff) | (kBias << 23)) - 1;
      const float rest = lower < 1 ? t * to_least : mantissa;
      const int32_t level = (lower < 1 ? 0 : lower) + (static_cast<float>(draws[i]) * 0x1p-24F < rest ? 1 : 0);
      codes[i] = static_cast<uint8_t>(with_sign(level, from[i]) + greatest);
    }
  });
}

void small_floats(std::span<const float> x, float scale, const SmallFloat& format, std::span<std::byte> out) {
  const float divisor = divisor_of(scale);
  const float largest = format.largest;
  const float least = format.least_normal;
  const unsigned cut = 23 - format.mantissa_bits;
  const uint32_t half = (1U << (cut - 1)) - 1;
  const uint32_t rebias = (biased_exponent(least) - 1) << format.mantissa_bits;
  // A sum with this number, 2^23 of the steps of the subnormal numbers, rounds to such a step.
  const uint32_t rounder_bits = (biased_exponent(least) + cut) << 23;
  const float rounder = std::bit_cast<float>(rounder_bits);
  const unsigned sign_shift = 31 - (format.bits - 1);
  in_blocks(x, format.bits, out,
            [=](const float* from, size_t count, size_t /*begin*/, uint8_t* codes) HWY_ATTR {
              for (size_t i = 0; i < count; ++i) {
                const float quotient = from[i] / divisor;
                const float raw = magnitude_of(quotient);
                const float value = raw < largest ? raw : largest;
                const auto bits = std::bit_cast<uint32_t>(value);
                const uint32_t normal = ((bits + half + (bits >> cut & 1)) >> cut) - rebias;
                const uint32_t subnormal = std::bit_cast<uint32_t>(value + rounder) - rounder_bits;
                const uint32_t sign = (std::bit_cast<uint32_t>(quotient) & 0x80000000) >> sign_shift;
                codes[i] = static_cast<uint8_t>((value < least ? subnormal : normal) | sign);
              }
            });
}

void fixed_points(std::span<const float> x, float scale, std::span<std::byte> out) {
  const float divisor = divisor_of(scale);
  in_blocks(x, 8, out, [=](const float* from, size_t count, size_t /*begin*/, uint8_t* codes) HWY_ATTR {
    for (size_t i = 0; i < count; ++i) {
      const float t = from[i] / divisor * 64;
      const float low = t > -127 ? t : -127.0F;
      const float both = low < 127 ? low : 127.0F;
      codes[i] =
          static_cast<uint8_t>(std::bit_cast<uint32_t>(both + kRounder) - std::bit_cast<uint32_t>(kRounder));
    }
  });
}

void clipped_steps(std::span<const float> x, float offset, float scale, float step, unsigned bits,
                   std::span<std::byte> out) {
  const float divisor = divisor_of(scale);
  const auto half = static_cast<float>(1U << (bits - 1));
  in_blocks(x, bits, out, [=](const float* from, size_t count, size_t /*begin*/, uint8_t* codes) HWY_ATTR {
    for (size_t i = 0; i < count; ++i) {
      const float steps = std::floor((from[i] - offset) / divisor / step);
      const float low = steps > -half ? steps : -half;
      codes[i] = static_cast<uint8_t>(static_cast<int32_t>((low < half - 1 ? low : half - 1) + half));
    }
  });
}

void between_points(std::span<const float> x, float offset, float scale, std::span<const float> points,
                    unsigned bits, Dither dither, std::span<std::byte> out) {
  const float divisor = divisor_of(scale);
  in_blocks(x, bits, out, [=](const float* from, size_t count, size_t begin, uint8_t* codes) HWY_ATTR {
    alignas(64) Draws draws;
    draw(dither, dither.first_index + begin, count, draws);
    for (size_t i = 0; i < count; ++i) {
      const float t = std::clamp((from[i] - offset) / divisor, points.front(), points.back());
      size_t lower = 0;
      for (size_t step = points.size() / 2; step > 0; step /= 2) {
        if (lower + step + 1 < points.size() && points[lower + step] <= t) lower += step;
      }
      const float rest = (t - points[lower]) / (points[lower + 1] - points[lower]);
      codes[i] = static_cast<uint8_t>(lower + (static_cast<float>(draws[i]) * 0x1p-24F < rest ? 1 : 0));
    }
  });
}

bool look_up(std::span<const std::byte> in, unsigned bits, const CodeTable& table, float offset, float scale,
             std::span<float> out) {
  const UnpackBlock unpack_block = unpacker_of(bits);
  alignas(64) Codes codes;
  bool is_number = true;
  for (size_t begin = 0; begin < out.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, out.size() - begin);
    unpack_block(in.data() + begin / 8 * bits, count, codes);
    float* const to = out.data() + begin;
    for (size_t i = 0; i < count; i += 16) prefetch(to + i + kAhead);
    for (size_t i = 0; i < count; ++i) to[i] = table[codes[i]];
    int32_t nans = 0;
    for (size_t i = 0; i < count; ++i) {
      nans |= std::isnan(to[i]) ? 1 : 0;
      to[i] = offset + scale * to[i];
    }
    is_number = is_number && nans == 0;
  }
  return is_number;
}

}  // namespace strait::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strait::kernels {

HWY_EXPORT(uniform_levels);
HWY_EXPORT(uniform_levels_stochastic);
HWY_EXPORT(exponential_levels);
HWY_EXPORT(small_floats);
HWY_EXPORT(fixed_points);
HWY_EXPORT(clipped_steps);
HWY_EXPORT(between_points);
HWY_EXPORT(look_up);

void uniform_levels(std::span<const float> x, float scale, unsigned bits, std::span<std::byte> out) {
  STRAIT_KERNEL(uniform_levels)(x, scale, bits, out);
}

void uniform_levels_stochastic(std::span<const float> x, float scale, unsigned bits, Dither dither,
                               std::span<std::byte> out) {
  STRAIT_KERNEL(uniform_levels_stochastic)(x, scale, bits, dither, out);
}

void exponential_levels(std::span<const float> x, float scale, unsigned bits, Dither dither,
                        std::span<std::byte> out) {
  STRAIT_KERNEL(exponential_levels)(x, scale, bits, dither, out);
}

void small_floats(std::span<const float> x, float scale, const SmallFloat& format, std::span<std::byte> out) {
  STRAIT_KERNEL(small_floats)(x, scale, format, out);
}

void fixed_points(std::span<const float> x, float scale, std::span<std::byte> out) {
  STRAIT_KERNEL(fixed_points)(x, scale, out);
}

void clipped_steps(std::span<const float> x, float offset, float scale, float step, unsigned bits,
                   std::span<std::byte> out) {
  STRAIT_KERNEL(clipped_steps)(x, offset, scale, step, bits, out);
}

void between_points(std::span<const float> x, float offset, float scale, std::span<const float> points,
                    unsigned bits, Dither dither, std::span<std::byte> out) {
  STRAIT_KERNEL(between_points)(x, offset, scale, points, bits, dither, out);
}

bool look_up(std::span<const std::byte> in, unsigned bits, const CodeTable& table, float offset, float scale,
             std::span<float> out) {
  return STRAIT_KERNEL(look_up)(in, bits, table, offset, scale, out);
}

}  // namespace strait::kernels
#endif
