#include <ATen/core/ivalue.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "strait/base/text.h"
#include "strait/codecs/composed.h"
#include "strait/codecs/groups.h"
#include "strait/codecs/moments.h"
#include "strait/codecs/selecting_codec.h"
#include "strait/kernels/channels.h"
#include "strait/kernels/index_code.h"
#include "strait/kernels/masked.h"
#include "strait/kernels/select.h"

namespace strait {
namespace {

// The elements of a group are squared times a power of two that brings the largest magnitude to [2^45, 2^46),
// or as near as 2^127 does. So the squares of up to 2^32 elements sum to a number of float32, and elements of
// 2^-119 of the largest still count.
constexpr uint32_t kExponentBias = 127;
constexpr uint32_t kExponentOfLargest = 45;
constexpr uint32_t kGreatestExponent = 2 * kExponentBias;  // as bits

/// That power of two, for a largest magnitude that is finite.
float scale_of(float largest) {
  const uint32_t exponent = std::bit_cast<uint32_t>(largest) >> 23;
  const uint32_t wanted = 2 * kExponentBias + kExponentOfLargest - exponent;
  return std::bit_cast<float>(std::min(wanted, kGreatestExponent) << 23);
}

/// The same of several groups.
at::Tensor scales_of(const at::Tensor& largest) {
  const at::Tensor exponents = largest.view(at::kInt).bitwise_right_shift(23);
  const at::Tensor wanted = exponents.neg().add(static_cast<int64_t>(2 * kExponentBias + kExponentOfLargest));
  return wanted.clamp_max(static_cast<int64_t>(kGreatestExponent)).bitwise_left_shift(23).view(at::kFloat);
}

[[noreturn]] void refuse() { throw NumericError("a value is not finite"); }

/// The sums of rows [G, rows, C] over the rows, [G, C], neighbour to neighbour.
at::Tensor sum_of_rows(at::Tensor sum) {
  const auto rows = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(sum.size(1))));
  if (rows != sum.size(1)) sum = at::constant_pad_nd(sum, {0, 0, 0, rows - sum.size(1)}, 0);
  while (sum.size(1) > 1) {
    const at::Tensor pairs = sum.view({sum.size(0), sum.size(1) / 2, 2, sum.size(2)});
    sum = pairs.select(2, 0).add(pairs.select(2, 1));
  }
  return sum.select(1, 0);
}

/// The ceil(p * C) channels of largest norm of the tensor, or of each sample; the others become 0
/// (docs/operators.md, "columns").
class Columns : public SelectingCodec {
 public:
  using SelectingCodec::SelectingCodec;

  SparseShape shape_of(const MessageMeta& meta) const override {
    const kernels::ChannelView view = view_of(meta);
    check_group_size("columns", view.elements());
    return {selection().per_sample ? meta.rows() : 1, view.elements(),
            kept_channels(view) * view.outer * view.inner, static_cast<size_t>(meta.shape.back())};
  }

 protected:
  size_t head_size(const MessageMeta& meta) const override {
    return kernels::bitmap_size(view_of(meta).channels);
  }

  void choose(std::span<const float> x, const Group& group, std::span<std::byte> head,
              std::span<uint64_t> mask) const override {
    thread_local std::vector<float> space;
    thread_local kernels::SelectScratch scratch;
    const kernels::ChannelView view = view_of(group.meta);
    const auto [sums, channels] = own_channels(view.channels);
    const float largest = largest_magnitude_of(x);
    if (!std::isfinite(largest)) refuse();
    kernels::sums_of_channel_squares(x, view, scale_of(largest), space, sums);
    kernels::select_largest(sums, kept_channels(view), scratch, channels);
    kernels::write_bitmap(channels, head);
    kernels::mark_channels(channels, view, mask);
  }

  void read_choice(std::span<const std::byte> head, const Group& group,
                   std::span<uint64_t> mask) const override {
    const kernels::ChannelView view = view_of(group.meta);
    const auto channels = own_channels(view.channels).second;
    if (!kernels::read_bitmap(head, view.channels, kept_channels(view), channels)) {
      throw WireError("group {} has no valid set of {} of {} channels", group.number, kept_channels(view),
                      view.channels);
    }
    kernels::mark_channels(channels, view, mask);
  }

  at::Tensor kept_of(const at::Tensor& groups, const MessageMeta& meta,
                     const MessageContext& /*context*/) const override {
    const kernels::ChannelView view = view_of(meta);
    const auto channels = static_cast<int64_t>(view.channels);
    const auto inner = static_cast<int64_t>(view.inner);
    const at::Tensor largest = groups.abs().amax(1, /*keepdim=*/true);
    if (!are_all(largest.isfinite())) refuse();
    const at::Tensor scaled = groups.mul(scales_of(largest));
    const at::Tensor squares = scaled.mul(scaled);
    const at::Tensor parts = inner == 1 ? squares : ordered_sum(squares.view({-1, inner}));
    const at::Tensor sums = sum_of_rows(parts.view({groups.size(0), -1, channels})).contiguous();
    // Keys are distinct: the sum first, then the lower channel.
    const at::Tensor from_last = at::arange(channels - 1, -1, -1, groups.options().dtype(at::kLong));
    const at::Tensor keys = sums.view(at::kInt).to(at::kLong).bitwise_left_shift(32).bitwise_or(from_last);
    const auto kept = static_cast<int64_t>(kept_channels(view));
    return elements_of(std::get<1>(keys.topk(kept, 1, /*largest=*/true, /*sorted=*/false)), view);
  }

  at::Tensor heads_of(const at::Tensor& kept, const MessageMeta& meta) const override {
    const kernels::ChannelView view = view_of(meta);
    const auto inner = static_cast<int64_t>(view.inner);
    // The first element of each channel that is kept, in the first part.
    const at::Tensor first =
        kept.view({kept.size(0), static_cast<int64_t>(view.outer), -1, inner}).select(1, 0).select(2, 0);
    return packed_sets(first.floor_divide(inner), static_cast<int64_t>(view.channels));
  }

  at::Tensor kept_by(const at::Tensor& heads, const MessageMeta& meta,
                     const MessageContext& /*context*/) const override {
    const kernels::ChannelView view = view_of(meta);
    const at::Tensor channels =
        unpacked_sets(heads, static_cast<int64_t>(view.channels), static_cast<int64_t>(kept_channels(view)));
    return channels.defined() ? elements_of(channels, view) : channels;
  }

 private:
  size_t kept_channels(const kernels::ChannelView& view) const { return selection().share.of(view.channels); }

  /// The positions of the elements of channels [G, K]: int64 [G, O K I], in ascending order where the channels
  /// are.
  static at::Tensor elements_of(const at::Tensor& channels, const kernels::ChannelView& view) {
    const auto inner = static_cast<int64_t>(view.inner);
    const auto numbers = [&](size_t count) {
      return at::arange(static_cast<int64_t>(count), channels.options());
    };
    const at::Tensor part = numbers(view.outer).mul(static_cast<int64_t>(view.channels) * inner);
    const at::Tensor first = channels.mul(inner).view({channels.size(0), 1, -1, 1});
    return first.add(part.view({1, -1, 1, 1})).add(numbers(view.inner)).view({channels.size(0), -1});
  }

  /// A group: the channels are dimension 1 of messages of four dimensions, the last of others.
  kernels::ChannelView view_of(const MessageMeta& meta) const {
    kernels::ChannelView view = channels_of(meta, spec());
    if (selection().per_sample) view.outer /= meta.rows();
    return view;
  }

  /// Space of the thread's own: a sum, and a mask, for each channel.
  static std::pair<std::span<float>, std::span<uint64_t>> own_channels(size_t channels) {
    thread_local std::vector<float> sums;
    thread_local std::vector<uint64_t> mask;
    const size_t words = kernels::mask_words(channels);
    if (sums.size() < channels) sums.resize(channels);
    if (mask.size() < words) mask.resize(words);
    return {std::span(sums).first(channels), std::span(mask).first(words)};
  }
};

}  // namespace

std::unique_ptr<Codec> make_columns(CodecIdentity identity, OperatorSpec spec) {
  const auto selection = selection_from(identity, spec, "channels", "tensor");
  auto values = kept_values_from(spec);
  spec.finish();
  return std::make_unique<Columns>(std::move(identity), selection, ValueLists(std::move(values)));
}

}  // namespace strait
