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

/// Calls work(begin, count, line) for what lies in [begin, end) of each group, at least one element each.
template <class Work>
HWY_INLINE void in_groups(const LineGroups& groups, size_t begin, size_t end, const Work& work) {
  size_t group = groups.lines.size() == 1 ? 0 : begin / groups.size;
  for (size_t last = (group + 1) * groups.size; begin < end; last += groups.size, ++group) {
    const size_t stop = std::min(last, end);
    work(begin, stop - begin, groups.lines[group]);
    begin = stop;
  }
}

/// Computes the codes with codes_of(x, count, begin, line, codes), for parts of groups, and packs them.
template <class CodesOf>
HWY_INLINE void in_blocks(std::span<const float> x, const LineGroups& groups, unsigned bits,
                          std::span<std::byte> out, const CodesOf& codes_of) {
  const PackBlock pack_block = packer_of(bits);
  alignas(64) Codes codes;
  for (size_t begin = 0; begin < x.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, x.size() - begin);
    for (size_t i = 0; i < count; i += 16) prefetch(x.data() + begin + i + kAhead);
    in_groups(groups, begin, begin + count, [&](size_t from, size_t some, Line line) HWY_ATTR {
      codes_of(x.data() + from, some, from, line, codes.data() + (from - begin));
    });
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

void largest_magnitudes(std::span<const float> x, size_t size, std::span<Line> lines) {
  for (size_t group = 0; group < lines.size(); ++group) {
    const size_t begin = group * size;
    const size_t end = std::min(begin + size, x.size());
    uint32_t largest = 0;
    for (size_t block = begin; block < end; block += kBlock) {
      const size_t stop = std::min(block + kBlock, end);
      for (size_t i = block; i < stop; i += 16) prefetch(x.data() + i + kAhead);
      for (size_t i = block; i < stop; ++i) {
        largest = std::max(largest, std::bit_cast<uint32_t>(x[i]) & 0x7fffffff);
      }
    }
    lines[group].scale = std::bit_cast<float>(largest);
  }
}

void uniform_levels(std::span<const float> x, const LineGroups& groups, unsigned bits,
                    std::span<std::byte> out) {
  const auto greatest = static_cast<float>(signed_levels(bits));
  const uint32_t to_code = signed_levels(bits) - std::bit_cast<uint32_t>(kRounder);
  in_blocks(x, groups, bits, out,
            [=](const float* from, size_t count, size_t /*begin*/, Line line, uint8_t* codes) HWY_ATTR {
              const float divisor = divisor_of(line.scale);
              for (size_t i = 0; i < count; ++i) {
                codes[i] = static_cast<uint8_t>(
                    std::bit_cast<uint32_t>(from[i] / divisor * greatest + kRounder) + to_code);
              }
            });
}

void uniform_levels_stochastic(std::span<const float> x, const LineGroups& groups, unsigned bits, Dither dither,
                               std::span<std::byte> out) {
  const auto greatest = static_cast<int32_t>(signed_levels(bits));
  const auto most = static_cast<float>(greatest);
  in_blocks(x, groups, bits, out,
            [=](const float* from, size_t count, size_t begin, Line line, uint8_t* codes) HWY_ATTR {
              const float divisor = divisor_of(line.scale);
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

void exponential_levels(std::span<const float> x, const LineGroups& groups, unsigned bits, Dither dither,
                        std::span<std::byte> out) {
  constexpr int32_t kBias = 127;
  const auto greatest = static_cast<int32_t>(signed_levels(bits));
  const float to_least = std::ldexp(1.0F, greatest - 1);  // over the least level above 0
  in_blocks(x, groups, bits, out,
            [=](const float* from, size_t count, size_t begin, Line line, uint8_t* codes) HWY_ATTR {
              const float divisor = divisor_of(line.scale);
              alignas(64) Draws draws;
              draw(dither, dither.first_index + begin, count, draws);
              for (size_t i = 0; i < count; ++i) {
                const float t = magnitude_of(from[i]) / divisor;
                const auto t_bits = std::bit_cast<int32_t>(t);
                const int32_t lower = (t_bits >> 23) - kBias + greatest;  // of a level above 0
                const float mantissa = std::bit_cast<float>((t_bits & 0x7fffff) | (kBias << 23)) - 1;
                const float rest = lower < 1 ? t * to_least : mantissa;
                const int32_t level =
                    (lower < 1 ? 0 : lower) + (static_cast<float>(draws[i]) * 0x1p-24F < rest ? 1 : 0);
                codes[i] = static_cast<uint8_t>(with_sign(level, from[i]) + greatest);
              }
            });
}

void small_floats(std::span<const float> x, const LineGroups& groups, const SmallFloat& format,
                  std::span<std::byte> out) {
  const float largest = format.largest;
  const float least = format.least_normal;
  const unsigned cut = 23 - format.mantissa_bits;
  const uint32_t half = (1U << (cut - 1)) - 1;
  const uint32_t rebias = (biased_exponent(least) - 1) << format.mantissa_bits;
  // A sum with this number, 2^23 of the steps of the subnormal numbers, rounds to such a step.
  const uint32_t rounder_bits = (biased_exponent(least) + cut) << 23;
  const float rounder = std::bit_cast<float>(rounder_bits);
  const unsigned sign_shift = 31 - (format.bits - 1);
  in_blocks(x, groups, format.bits, out,
            [=](const float* from, size_t count, size_t /*begin*/, Line line, uint8_t* codes) HWY_ATTR {
              const float divisor = divisor_of(line.scale);
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

void fixed_points(std::span<const float> x, const LineGroups& groups, std::span<std::byte> out) {
  in_blocks(x, groups, 8, out,
            [=](const float* from, size_t count, size_t /*begin*/, Line line, uint8_t* codes) HWY_ATTR {
              const float divisor = divisor_of(line.scale);
              for (size_t i = 0; i < count; ++i) {
                const float t = from[i] / divisor * 64;
                const float low = t > -127 ? t : -127.0F;
                const float both = low < 127 ? low : 127.0F;
                codes[i] = static_cast<uint8_t>(std::bit_cast<uint32_t>(both + kRounder) -
                                                std::bit_cast<uint32_t>(kRounder));
              }
            });
}

void clipped_steps(std::span<const float> x, const LineGroups& groups, float step, unsigned bits,
                   std::span<std::byte> out) {
  const auto half = static_cast<float>(1U << (bits - 1));
  in_blocks(x, groups, bits, out,
            [=](const float* from, size_t count, size_t /*begin*/, Line line, uint8_t* codes) HWY_ATTR {
              const float divisor = divisor_of(line.scale);
              for (size_t i = 0; i < count; ++i) {
                const float steps = std::floor((from[i] - line.offset) / divisor / step);
                const float low = steps > -half ? steps : -half;
                codes[i] = static_cast<uint8_t>(static_cast<int32_t>((low < half - 1 ? low : half - 1) + half));
              }
            });
}

void between_points(std::span<const float> x, const LineGroups& groups, std::span<const CodeTable> tables,
                    unsigned bits, Dither dither, std::span<std::byte> out) {
  const size_t count_of_points = size_t{1} << bits;
  in_blocks(x, groups, bits, out,
            [=](const float* from, size_t count, size_t begin, Line line, uint8_t* codes) HWY_ATTR {
              const float divisor = divisor_of(line.scale);
              const std::span<const float> points = std::span(tables[line.table]).first(count_of_points);
              alignas(64) Draws draws;
              draw(dither, dither.first_index + begin, count, draws);
              for (size_t i = 0; i < count; ++i) {
                const float t = std::clamp((from[i] - line.offset) / divisor, points.front(), points.back());
                size_t lower = 0;
                for (size_t step = points.size() / 2; step > 0; step /= 2) {
                  if (lower + step + 1 < points.size() && points[lower + step] <= t) lower += step;
                }
                const float rest = (t - points[lower]) / (points[lower + 1] - points[lower]);
                codes[i] =
                    static_cast<uint8_t>(lower + (static_cast<float>(draws[i]) * 0x1p-24F < rest ? 1 : 0));
              }
            });
}

bool look_up(std::span<const std::byte> in, unsigned bits, std::span<const CodeTable> tables,
             const LineGroups& groups, std::span<float> out) {
  const UnpackBlock unpack_block = unpacker_of(bits);
  alignas(64) Codes codes;
  bool is_number = true;
  for (size_t begin = 0; begin < out.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, out.size() - begin);
    unpack_block(in.data() + begin / 8 * bits, count, codes);
    for (size_t i = 0; i < count; i += 16) prefetch(out.data() + begin + i + kAhead);
    in_groups(groups, begin, begin + count, [&](size_t from, size_t some, Line line) HWY_ATTR {
      float* const to = out.data() + from;
      const uint8_t* const code = codes.data() + (from - begin);
      const CodeTable& table = tables[line.table];
      for (size_t i = 0; i < some; ++i) to[i] = table[code[i]];
      int32_t nans = 0;
      for (size_t i = 0; i < some; ++i) {
        nans |= std::isnan(to[i]) ? 1 : 0;
        to[i] = line.offset + line.scale * to[i];
      }
      is_number = is_number && nans == 0;
    });
  }
  return is_number;
}

}  // namespace strait::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strait::kernels {

HWY_EXPORT(largest_magnitudes);
HWY_EXPORT(uniform_levels);
HWY_EXPORT(uniform_levels_stochastic);
HWY_EXPORT(exponential_levels);
HWY_EXPORT(small_floats);
HWY_EXPORT(fixed_points);
HWY_EXPORT(clipped_steps);
HWY_EXPORT(between_points);
HWY_EXPORT(look_up);

void largest_magnitudes(std::span<const float> x, size_t size, std::span<Line> lines) {
  STRAIT_KERNEL(largest_magnitudes)(x, size, lines);
}

void uniform_levels(std::span<const float> x, const LineGroups& groups, unsigned bits,
                    std::span<std::byte> out) {
  STRAIT_KERNEL(uniform_levels)(x, groups, bits, out);
}

void uniform_levels_stochastic(std::span<const float> x, const LineGroups& groups, unsigned bits, Dither dither,
                               std::span<std::byte> out) {
  STRAIT_KERNEL(uniform_levels_stochastic)(x, groups, bits, dither, out);
}

void exponential_levels(std::span<const float> x, const LineGroups& groups, unsigned bits, Dither dither,
                        std::span<std::byte> out) {
  STRAIT_KERNEL(exponential_levels)(x, groups, bits, dither, out);
}

void small_floats(std::span<const float> x, const LineGroups& groups, const SmallFloat& format,
                  std::span<std::byte> out) {
  STRAIT_KERNEL(small_floats)(x, groups, format, out);
}

void fixed_points(std::span<const float> x, const LineGroups& groups, std::span<std::byte> out) {
  STRAIT_KERNEL(fixed_points)(x, groups, out);
}

void clipped_steps(std::span<const float> x, const LineGroups& groups, float step, unsigned bits,
                   std::span<std::byte> out) {
  STRAIT_KERNEL(clipped_steps)(x, groups, step, bits, out);
}

void between_points(std::span<const float> x, const LineGroups& groups, std::span<const CodeTable> tables,
                    unsigned bits, Dither dither, std::span<std::byte> out) {
  STRAIT_KERNEL(between_points)(x, groups, tables, bits, dither, out);
}

bool look_up(std::span<const std::byte> in, unsigned bits, std::span<const CodeTable> tables,
             const LineGroups& groups, std::span<float> out) {
  return STRAIT_KERNEL(look_up)(in, bits, tables, groups, out);
}

}  // namespace strait::kernels
#endif
