#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace strait::kernels {

/// How a group falls into channels: [outer, channels, inner], row-major.
struct ChannelView {
  size_t outer = 0;     ///< parts that each have all channels
  size_t channels = 0;  ///< of the group
  size_t inner = 0;     ///< elements of a channel that lie together

  /// Elements of the group.
  size_t elements() const { return outer * channels * inner; }
};

/// The sum of the squares of each channel's elements times `factor`. First the `inner` elements that lie
/// together are added in the order of kernels/sums.h, then the `outer` sums, neighbour to neighbour as the rows
/// there are. Where an element is not finite, nor is the sum. x.size() == view.elements(), sums.size() ==
/// view.channels; `space` grows as needed.
void sums_of_channel_squares(std::span<const float> x, const ChannelView& view, float factor,
                             std::vector<float>& space, std::span<float> sums);

/// The largest magnitude of each channel, as float32 bits; above infinity where one is NaN. x.size() ==
/// view.elements(), largest.size() == view.channels.
void largest_of_channels(std::span<const float> x, const ChannelView& view, std::span<uint32_t> largest);

/// Marks all elements of the marked channels. `channels` is a mask of view.channels positions and `elements`
/// one of view.elements() (masked.h).
void mark_channels(std::span<const uint64_t> channels, const ChannelView& view, std::span<uint64_t> elements);

}  // namespace strait::kernels
