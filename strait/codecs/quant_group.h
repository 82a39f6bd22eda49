#pragma once

#include <ATen/core/Tensor.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "strait/base/bytes.h"
#include "strait/codecs/message.h"
#include "strait/kernels/quantise.h"

namespace strait {

// One group of quantised values: lo and hi, and codes of 1..8 bits (docs/wire_format.md, "quant"). The
// arithmetic is that of kernels/quantise.h; here stand its checks and its form for a device.

/// Bytes of a range in a payload.
constexpr size_t kRangeSize = 2 * sizeof(float);

using kernels::RangeType;

/// Bytes of a range of that type.
constexpr size_t range_size(RangeType type) { return type == RangeType::fp32 ? kRangeSize : kRangeSize / 2; }

/// The range of at least one element; throws NumericError when an element is not finite or hi - lo is
/// past float32.
kernels::Range sendable_range(std::span<const float> x);

/// The range itself where its ends and their difference are finite; else throws NumericError.
kernels::Range sendable(kernels::Range range);

/// Throws NumericError that says what is wrong with a range that is not usable.
[[noreturn]] void reject_range(kernels::Range range);

/// The narrowest range with ends of that type around it. Throws NumericError where that is not sendable.
inline kernels::Range as_sent(kernels::Range range, RangeType type) {
  const kernels::Range sent = kernels::range_around(range, type);
  if (!kernels::is_usable(sent)) reject_range(range);
  return sent;
}

/// Throws WireError when the range is not one that as_sent() returns.
kernels::Range read_range(ByteReader& in, RangeType type = RangeType::fp32);

/// Writes `lo`, then `hi`, which are of that type.
inline void write_range(kernels::Range range, ByteWriter& out, RangeType type = RangeType::fp32) {
  if (type == RangeType::fp32) {
    out.put(range.lo);
    out.put(range.hi);
    return;
  }
  const auto upper_half = [](float end) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(end) >> 16); };
  out.put(upper_half(range.lo));
  out.put(upper_half(range.hi));
}

/// Throws WireError when the packed codes of a group of `count` elements end in padding that is not zero, or
/// one is not zero where hi == lo. codes.size() == packed_size(count, bits).
void check_codes(std::span<const std::byte> codes, size_t count, kernels::Range range, unsigned bits);

/// The dither of a message's elements, in the order of its groups: with channels first an element's index in
/// the batch is the first row's and its place in that order.
kernels::Dither make_dither(const MessageContext& context, const MessageMeta& meta);

/// The dither of what begins `elements` later.
kernels::Dither advanced(kernels::Dither dither, size_t elements);

/// The numbers of a message's elements, float32 [elements], on the device of `like`.
at::Tensor dither_of(const MessageContext& context, const MessageMeta& meta, const at::Tensor& like);

/// kernels::draw_at() of `count` elements from the first on, as int64 [count], on the device of `like`.
at::Tensor draws_of(kernels::Dither dither, size_t count, const at::Tensor& like);

/// Groups as they are sent, on their device.
struct QuantisedGroups {
  at::Tensor ranges;  ///< float32 [G, 2]: lo and hi
  at::Tensor codes;   ///< int64 [G, n]
};

/// Quantises `groups` [G, n], n >= 1, each row one group. Rounds to nearest, or with `dither` [G, n]
/// stochastically. Throws NumericError as sendable_range() and as_sent() do.
QuantisedGroups quantised_groups(const at::Tensor& groups, unsigned bits,
                                 const std::optional<at::Tensor>& dither, RangeType type = RangeType::fp32);

/// What the receiver sees of them, float32 [G, n]; undefined where read_range() or check_codes() would throw.
at::Tensor dequantised_groups(const QuantisedGroups& groups, unsigned bits);

/// Both.
at::Tensor reconstruct_groups(const at::Tensor& groups, unsigned bits, const std::optional<at::Tensor>& dither);

/// The same in a few LibTorch calls (Codec::reference): encoded as a tensor of bytes, and decoded from it.
at::Tensor reference_groups(const at::Tensor& groups, unsigned bits, bool stochastic,
                            RangeType type = RangeType::fp32);

}  // namespace strait
