#include <ATen/core/ivalue.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "strait/codecs/finite.h"
#include "strait/codecs/fraction.h"
#include "strait/codecs/level_codec.h"
#include "strait/codecs/moments.h"
#include "strait/kernels/channels.h"
#include "strait/kernels/half.h"
#include "strait/kernels/index_code.h"
#include "strait/kernels/masked.h"

namespace strait {
namespace {

/// Which channels are outliers, and which elements of a row are theirs. Masks of kernels/masked.h.
struct OutlierMasks {
  std::vector<uint64_t> channels;
  std::vector<uint64_t> outliers;  ///< elements of a row
  std::vector<uint64_t> others;    ///< the other elements of a row
  std::vector<uint32_t> largest;   ///< magnitude of each channel, as float32 bits

  static OutlierMasks& own() {
    thread_local OutlierMasks masks;
    return masks;
  }

  /// Fills the masks of elements from that of channels.
  void mark(const kernels::ChannelView& view) {
    const kernels::ChannelView row{1, view.channels, view.inner};
    outliers.resize(kernels::mask_words(row.elements()));
    kernels::mark_channels(channels, row, outliers);
    others.resize(outliers.size());
    std::ranges::transform(outliers, others.begin(), [](uint64_t word) { return ~word; });
    if (const size_t used = row.elements() % 64; used != 0) others.back() &= (uint64_t{1} << used) - 1;
  }
};

/// Space of the thread's own.
std::span<float> own_row_part(size_t count) {
  thread_local std::vector<float> values;
  if (values.size() < count) values.resize(count);
  return std::span(values).first(count);
}

/// Channels with a large element as fp16; the others in steps of equal size between the ends of each row
/// (docs/operators.md, "outliers"). Source: LLM.int8(), Dettmers et al. 2022, arXiv 2208.07339.
class Outliers : public Codec {
 public:
  Outliers(CodecIdentity identity, unsigned bits, float threshold)
      : Codec(std::move(identity)), bits_(bits), threshold_(threshold), table_(table_of(bits)) {}

  at::Tensor reconstruct(const at::Tensor& x, const MessageContext& /*context*/) const override {
    if (x.numel() == 0) return x.clone(at::MemoryFormat::Contiguous);
    const kernels::ChannelView view = channels_of(meta_of(x), spec());
    check_largest(largest_magnitude(x), kernels::kFp16OverflowBits, "fp16");
    const at::Tensor rows =
        x.contiguous().view({static_cast<int64_t>(view.outer), static_cast<int64_t>(view.channels),
                             static_cast<int64_t>(view.inner)});
    const at::Tensor is_outlier = rows.abs().amax({0, 2}, /*keepdim=*/true).ge(static_cast<double>(threshold_));
    const at::Tensor others = rows.masked_fill(is_outlier, 0);
    const at::Tensor scale = others.abs().amax({1, 2}, /*keepdim=*/true);
    const auto half = static_cast<double>(1U << (bits_ - 1));
    const at::Tensor step = over_scale(others, scale).mul(half).floor();
    const at::Tensor unit = step.clamp(-half, half - 1).add(0.5).mul(1 / half);
    const at::Tensor seen = scale.mul(unit).add(0);  // never -0
    return at::where(is_outlier, rows.to(at::kHalf).to(at::kFloat), seen).view(x.sizes());
  }

 protected:
  PayloadSize do_payload_size(const MessageMeta& meta) const override {
    const kernels::ChannelView view = channels_of(meta, spec());
    const Sizes all = sizes_of(view, view.channels);  // a code never takes more than fp16
    return {kernels::bitmap_size(view.channels) + view.outer * (sizeof(float) + all.outliers), false};
  }

  void do_encode(std::span<const float> x, const MessageMeta& meta, const MessageContext& /*context*/,
                 ByteWriter& out) const override {
    const kernels::ChannelView view = channels_of(meta, spec());
    OutlierMasks& masks = OutlierMasks::own();
    const size_t count = find_outliers(x, view, masks);
    masks.mark(view);
    kernels::write_bitmap(masks.channels, out.claim(kernels::bitmap_size(view.channels)));
    const Sizes sizes = sizes_of(view, count);
    const auto scales = out.claim(view.outer * sizeof(float));
    const auto codes = out.claim(view.outer * sizes.codes);
    const auto values = out.claim(view.outer * sizes.outliers);
    in_rows(view, [&](size_t row, size_t width) {
      const auto elements = x.subspan(row * width, width);
      const auto outliers = own_row_part(sizes.outliers / 2);
      kernels::gather_masked(elements, masks.outliers, outliers);
      kernels::to_fp16(outliers, values.subspan(row * sizes.outliers, sizes.outliers));
      const auto others = own_row_part(width - outliers.size());
      kernels::gather_masked(elements, masks.others, others);
      kernels::Line line;
      kernels::largest_magnitudes(others, others.size(), {&line, 1});
      ByteWriter(scales.subspan(row * sizeof(float))).put(line.scale);
      const float step = 1 / static_cast<float>(1U << (bits_ - 1));
      kernels::clipped_steps(others, {{&line, 1}, others.size()}, step, bits_,
                             codes.subspan(row * sizes.codes, sizes.codes));
    });
  }

  void do_decode(ByteReader& in, const MessageMeta& meta, const MessageContext& /*context*/,
                 std::span<float> out) const override {
    const kernels::ChannelView view = channels_of(meta, spec());
    OutlierMasks& masks = OutlierMasks::own();
    const auto bitmap = in.take(kernels::bitmap_size(view.channels));
    size_t count = 0;
    for (const std::byte byte : bitmap)
      count += static_cast<size_t>(std::popcount(std::to_integer<uint8_t>(byte)));
    masks.channels.resize(kernels::mask_words(view.channels));
    if (!kernels::read_bitmap(bitmap, view.channels, count, masks.channels)) {
      throw WireError("the padding behind {} channels is not zero", view.channels);
    }
    masks.mark(view);
    const Sizes sizes = sizes_of(view, count);
    const auto scales = in.take(view.outer * sizeof(float));
    const auto codes = in.take(view.outer * sizes.codes);
    const auto values = in.take(view.outer * sizes.outliers);
    in_rows(view, [&](size_t row, size_t width) {
      const auto elements = out.subspan(row * width, width);
      const auto outliers = own_row_part(sizes.outliers / 2);
      if (!kernels::from_fp16(values.subspan(row * sizes.outliers, sizes.outliers), outliers)) {
        throw WireError("an fp16 value is not finite");
      }
      kernels::scatter_masked(outliers, masks.outliers, elements);
      const auto others = own_row_part(width - outliers.size());
      const kernels::Line line{0, read_scale(scales.subspan(row * sizeof(float)), others.empty())};
      const auto packed = codes.subspan(row * sizes.codes, sizes.codes);
      check_padding(packed, others.size(), bits_);
      kernels::look_up(packed, bits_, {&table_, 1}, {{&line, 1}, others.size()}, others);
      kernels::put_masked(others, masks.others, elements);
    });
    check_outliers(out, view, masks);
  }

 private:
  /// Bytes of a row.
  struct Sizes {
    size_t codes = 0;
    size_t outliers = 0;
  };

  Sizes sizes_of(const kernels::ChannelView& view, size_t outliers) const {
    return {kernels::packed_size((view.channels - outliers) * view.inner, bits_),
            outliers * view.inner * sizeof(uint16_t)};
  }

  /// The middles of 2^bits steps from -1 to 1.
  static kernels::CodeTable table_of(unsigned bits) {
    kernels::CodeTable table{};
    const float half = static_cast<float>(1U << (bits - 1));
    for (unsigned code = 0; code < 1U << bits; ++code)
      table[code] = (static_cast<float>(code) + 0.5F - half) / half;
    return table;
  }

  /// Calls work(row, elements of a row) for every row; threads share them.
  template <class Work>
  static void in_rows(const kernels::ChannelView& view, const Work& work) {
    const size_t width = view.channels * view.inner;
    in_runs({view.outer, width, width}, [&](size_t first, size_t last) {
      for (size_t row = first; row < last; ++row) work(row, width);
    });
  }

  /// Marks the channels with an element of the threshold or more. Returns how many.
  size_t find_outliers(std::span<const float> x, const kernels::ChannelView& view, OutlierMasks& masks) const {
    masks.largest.resize(view.channels);
    kernels::largest_of_channels(x, view, masks.largest);
    check_largest(std::ranges::max(masks.largest), kernels::kFp16OverflowBits, "fp16");
    masks.channels.assign(kernels::mask_words(view.channels), 0);
    size_t count = 0;
    for (size_t i = 0; i < view.channels; ++i) {
      if (masks.largest[i] < std::bit_cast<uint32_t>(threshold_)) continue;
      masks.channels[i / 64] |= uint64_t{1} << i % 64;
      ++count;
    }
    return count;
  }

  float read_scale(std::span<const std::byte> bytes, bool is_of_nothing) const {
    const auto scale = ByteReader(bytes).get<float>();
    if (!(scale < threshold_) || std::signbit(scale) || (is_of_nothing && scale != 0)) {
      throw WireError("{} is not the largest magnitude of a row without outliers", scale);
    }
    return scale;
  }

  /// A channel is sent as fp16 because it has an element of the threshold or more.
  void check_outliers(std::span<const float> x, const kernels::ChannelView& view, OutlierMasks& masks) const {
    const float least = static_cast<float>(at::Half(threshold_));
    masks.largest.resize(view.channels);
    kernels::largest_of_channels(x, view, masks.largest);
    for (size_t i = 0; i < view.channels; ++i) {
      const bool is_outlier = (masks.channels[i / 64] >> i % 64 & 1) != 0;
      if (is_outlier && masks.largest[i] < std::bit_cast<uint32_t>(least)) {
        throw WireError("channel {} is sent as an outlier and has none", i);
      }
    }
  }

  unsigned bits_;
  float threshold_;  ///< least magnitude of an outlier
  kernels::CodeTable table_;
};

}  // namespace

std::unique_ptr<Codec> make_outliers(CodecIdentity identity, OperatorSpec spec) {
  constexpr double kMost = 65504;  // of fp16
  const unsigned bits = bits_from(spec, 2);
  const std::string text = spec.option("threshold", "6");
  const auto threshold = parse_decimal(text);
  if (!threshold || !(static_cast<float>(*threshold) > 0) || *threshold > kMost) {
    spec.reject("threshold", text, "a decimal above 0, at most 65504");
  }
  spec.finish();
  return std::make_unique<Outliers>(std::move(identity), bits, static_cast<float>(*threshold));
}

}  // namespace strait
