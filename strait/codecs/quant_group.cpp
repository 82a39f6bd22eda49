#include "strait/codecs/quant_group.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/nextafter.h>
#include <ATen/ops/rand_like.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "strait/base/random.h"
#include "strait/codecs/composed.h"
#include "strait/codecs/groups.h"

namespace strait {
namespace {

bool is_negative_zero(float value) { return std::bit_cast<uint32_t>(value) == 0x80000000; }

/// kernels::bf16_at_most() of each element.
at::Tensor bf16_at_most(const at::Tensor& x) {
  constexpr int64_t kLowerHalf = 0xffff;
  const at::Tensor bits = x.contiguous().view(at::kInt);
  const at::Tensor upper = at::where(bits.lt(0), bits.add(kLowerHalf), bits).bitwise_and(~kLowerHalf);
  return at::where(x.isfinite(), upper.view(at::kFloat), x);
}

/// lowbias32 over int64 elements that hold 32 bits; products wrap and are cut back to 32 bits.
at::Tensor lowbias32(at::Tensor x) {
  constexpr int64_t kMask = 0xffffffff;
  x = x.bitwise_xor(x.bitwise_right_shift(16)).mul(0x7feb352dL).bitwise_and(kMask);
  x = x.bitwise_xor(x.bitwise_right_shift(15)).mul(0x846ca68bL).bitwise_and(kMask);
  return x.bitwise_xor(x.bitwise_right_shift(16));
}

/// A scalar that lives on the tensor's device. CUDA turns a division by a host scalar into a product with
/// its inverse, which rounds differently.
at::Tensor scalar_like(const at::Tensor& x, float value) { return at::full({1}, value, x.options()); }

/// The greatest code.
at::Tensor levels_like(const at::Tensor& x, unsigned bits) {
  return scalar_like(x, static_cast<float>((1U << bits) - 1));
}

}  // namespace

void reject_range(kernels::Range range) {
  if (std::isfinite(range.lo) && std::isfinite(range.hi)) {
    throw NumericError("values from {} to {} span more than float32 can hold", range.lo, range.hi);
  }
  throw NumericError("a value is not finite");
}

kernels::Range sendable(kernels::Range range) {
  if (!kernels::is_usable(range)) reject_range(range);
  return range;
}

kernels::Range sendable_range(std::span<const float> x) { return sendable(kernels::range_of(x)); }

kernels::Range read_range(ByteReader& in, RangeType type) {
  const auto end = [&] {
    if (type == RangeType::fp32) return in.get<float>();
    return std::bit_cast<float>(uint32_t{in.get<uint16_t>()} << 16);
  };
  kernels::Range range;
  range.lo = end();
  range.hi = end();
  if (!kernels::is_usable(range) || range.hi < range.lo || is_negative_zero(range.lo) ||
      is_negative_zero(range.hi)) {
    throw WireError("a group's values cannot lie between {} and {}", range.lo, range.hi);
  }
  return range;
}

void check_codes(std::span<const std::byte> codes, size_t count, kernels::Range range, unsigned bits) {
  check_padding(codes, count, bits);
  if (range.lo == range.hi && std::ranges::any_of(codes, [](std::byte b) { return b != std::byte{0}; })) {
    throw WireError("a group of equal values has a code that is not zero");
  }
}

kernels::Dither make_dither(const MessageContext& context, const MessageMeta& meta) {
  const uint64_t key =
      make_key(context.seed, context.boundary, static_cast<uint64_t>(context.direction), context.step);
  return {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32), context.first_row * meta.row_size()};
}

kernels::Dither advanced(kernels::Dither dither, size_t elements) {
  dither.first_index += elements;
  return dither;
}

at::Tensor draws_of(kernels::Dither dither, size_t count, const at::Tensor& like) {
  constexpr int64_t kMask = 0xffffffff;
  const auto first = static_cast<int64_t>(dither.first_index);
  const at::Tensor position =
      at::arange(first, first + static_cast<int64_t>(count), like.options().dtype(at::kLong));
  const at::Tensor low = position.bitwise_and(kMask).bitwise_xor(static_cast<int64_t>(dither.key0));
  const at::Tensor high =
      position.bitwise_right_shift(32).mul(static_cast<int64_t>(kernels::kDitherHighFactor));
  const at::Tensor second = lowbias32(low).add(high).add(static_cast<int64_t>(dither.key1)).bitwise_and(kMask);
  return lowbias32(second);
}

at::Tensor dither_of(const MessageContext& context, const MessageMeta& meta, const at::Tensor& like) {
  const at::Tensor draws = draws_of(make_dither(context, meta), meta.elements(), like);
  return draws.bitwise_right_shift(8).to(at::kFloat).mul(0x1p-24);
}

QuantisedGroups quantised_groups(const at::Tensor& groups, unsigned bits,
                                 const std::optional<at::Tensor>& dither, RangeType type) {
  const auto [least, greatest] = at::aminmax(groups, 1, /*keepdim=*/true);
  const bool is_wider = type == RangeType::bf16;
  // Adding +0 turns -0 into +0, as kernels::range_of does.
  const at::Tensor lo = (is_wider ? bf16_at_most(least) : least).add(0.0);
  const at::Tensor hi = (is_wider ? bf16_at_most(greatest.neg()).neg() : greatest).add(0.0);
  const at::Tensor extent = hi.sub(lo);
  if (const at::Tensor is_usable = lo.add(extent).isfinite(); !is_usable.all().item<bool>()) {
    // The first group that cannot be sent, for the message.
    const at::Tensor worst = is_usable.logical_not().view(-1).to(at::kByte).argmax();
    reject_range({least.view(-1).index_select(0, worst).item<float>(),
                  greatest.view(-1).index_select(0, worst).item<float>()});
  }
  const at::Tensor divisor = at::where(extent.eq(0.0), scalar_like(groups, 1), extent);
  const at::Tensor levels = levels_like(groups, bits);
  const at::Tensor t = groups.sub(lo).div(divisor).mul(levels);
  at::Tensor codes;
  if (dither) {
    const at::Tensor floor = t.floor();
    codes = floor.add(dither->lt(t.sub(floor)).to(at::kFloat));
  } else {
    codes = t.round();
  }
  return {at::cat({lo, hi}, 1), codes.to(at::kLong)};
}

at::Tensor dequantised_groups(const QuantisedGroups& groups, unsigned bits) {
  const at::Tensor lo = groups.ranges.narrow(1, 0, 1);
  const at::Tensor extent = groups.ranges.narrow(1, 1, 1).sub(lo);
  const at::Tensor in_order =
      groups.ranges.isfinite().logical_and(is_negative_zero(groups.ranges).logical_not());
  const at::Tensor has_extent = lo.add(extent).isfinite().logical_and(extent.ge(0));
  const at::Tensor has_codes = extent.gt(0).logical_or(groups.codes.eq(0).all(1, /*keepdim=*/true));
  if (!are_all(in_order) || !are_all(has_extent.logical_and(has_codes))) return {};
  return lo.add(groups.codes.to(at::kFloat).div(levels_like(extent, bits)).mul(extent));
}

at::Tensor reconstruct_groups(const at::Tensor& groups, unsigned bits,
                              const std::optional<at::Tensor>& dither) {
  return dequantised_groups(quantised_groups(groups, bits, dither), bits);
}

at::Tensor reference_groups(const at::Tensor& groups, unsigned bits, bool stochastic, RangeType type) {
  const auto levels = static_cast<double>((1U << bits) - 1);
  at::Tensor low = groups.amin(1, /*keepdim=*/true);
  at::Tensor high = groups.amax(1, /*keepdim=*/true);
  if (type == RangeType::bf16) {
    const auto rounded = [](const at::Tensor& end, float towards) {
      const at::Tensor nearest = end.to(at::kBFloat16);
      const at::Tensor next = at::nextafter(nearest, at::full_like(nearest, towards));
      const at::Tensor is_outside =
          towards < 0 ? nearest.to(at::kFloat).le(end) : nearest.to(at::kFloat).ge(end);
      return at::where(is_outside, nearest, next).to(at::kFloat);
    };
    low = rounded(low, -INFINITY);
    high = rounded(high, INFINITY);
  }
  const at::Tensor range = high.sub_(low);
  const at::Tensor divisor = range.masked_fill(range.eq(0), 1);
  at::Tensor scaled = groups.sub(low).div_(divisor).mul_(levels);
  if (stochastic) {
    scaled.add_(at::rand_like(scaled)).floor_().clamp_max_(levels);  // the sum can round up to levels + 1
  } else {
    scaled.round_();
  }
  const at::Tensor codes = scaled.to(at::kByte);
  return codes.to(at::kFloat).div_(levels).mul_(range).add_(low);
}

}  // namespace strait
