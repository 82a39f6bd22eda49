#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <optional>
#include <vector>

#include "strait/base/raise_to.h"
#include "strait/base/text.h"
#include "strait/codecs/codec.h"
#include "strait/codecs/finite.h"
#include "strait/codecs/fraction.h"
#include "strait/codecs/groups.h"
#include "strait/kernels/half.h"
#include "strait/kernels/index_code.h"
#include "strait/kernels/sums.h"
#include "strait/kernels/tiles.h"

namespace strait {
namespace {

constexpr unsigned kPlaceBits = 6;  // of a pivot's place in its tile
constexpr size_t kTileRange = 4;    // bytes: the least value and the step

bool bit_at(std::span<const std::byte> bits, size_t i) {
  return (std::to_integer<unsigned>(bits[i / 8]) >> i % 8 & 1) != 0;
}

void set_bit(std::span<std::byte> bits, size_t i) { bits[i / 8] |= static_cast<std::byte>(1U << i % 8); }

/// How a message falls into tokens, rows of the last dimension, and those into tiles.
struct Tokens {
  size_t samples = 0;
  size_t each = 0;   ///< of a sample
  size_t width = 0;  ///< elements of a token

  size_t count() const { return samples * each; }
  size_t tiles_a_token() const { return width / kernels::kTile; }
  size_t tiles() const { return count() * tiles_a_token(); }

  /// Calls work(first, last) for runs of tokens, which threads share.
  template <class Work>
  void in_shares(const Work& work) const {
    const auto grain = std::max<int64_t>(1, kGroupGrain / static_cast<int64_t>(width));
    at::parallel_for(0, static_cast<int64_t>(count()), grain, [&](int64_t first, int64_t last) {
      work(static_cast<size_t>(first), static_cast<size_t>(last));
    });
  }
};

/// The entropy of each token [N, W] in bits, [N, 1], as kernels::entropy() gives it.
at::Tensor entropies_of(const at::Tensor& tokens) {
  const at::Tensor magnitudes = tokens.abs();
  constexpr double kLeast = std::numeric_limits<float>::min();
  const at::Tensor p = magnitudes.mul(ordered_sum(magnitudes).clamp_min(kLeast).reciprocal());
  const at::Tensor bits = p.view(at::kInt);
  const at::Tensor exponent = bits.sub(kernels::kLog2Split).bitwise_right_shift(23);
  const at::Tensor rest = bits.sub(exponent.mul(1 << 23)).view(at::kFloat).sub(1);
  at::Tensor quotient = at::ones_like(rest).mul(static_cast<double>(kernels::kLog2Terms[0]));
  for (size_t i = 1; i < kernels::kLog2Terms.size(); ++i) {
    quotient = quotient.mul(rest).add(static_cast<double>(kernels::kLog2Terms[i]));
  }
  const at::Tensor terms = p.mul(exponent.to(at::kFloat).add(rest.mul(quotient)).neg());
  return ordered_sum(terms.masked_fill(p.lt(kLeast), 0));
}

/// Element 0 of each row changes places with the one at `place` [N, 1].
at::Tensor swapped(const at::Tensor& rows, const at::Tensor& place) {
  return rows.scatter(1, place, rows.narrow(1, 0, 1)).scatter(1, at::zeros_like(place), rows.gather(1, place));
}

void check_range(uint32_t largest) {
  if (largest >= kernels::kFp16OverflowBits) {
    throw NumericError("the least value or the step of a tile, of magnitude {}, is past the range of fp16",
                       std::bit_cast<float>(largest));
  }
}

void check_ranges(std::span<const std::byte> ranges) {
  constexpr uint16_t kInfinity = 0x7c00;
  ByteReader in(ranges);
  while (in.left() > 0) {
    const auto least = in.get<uint16_t>();
    const auto step = in.get<uint16_t>();
    if ((least & 0x7fff) >= kInfinity || step >= kInfinity) {
      throw WireError("the fp16 bits {:#06x} and {:#06x} are not the least value and the step of a tile", least,
                      step);
    }
  }
}

/// Space of the thread's own: a place for each tile.
std::span<uint8_t> own_pivots(size_t tiles) {
  thread_local std::vector<uint8_t> pivots;
  pivots.resize(tiles);
  return pivots;
}

/// Marks the tiles that have a pivot, and appends its places.
void write_pivots(std::span<const uint8_t> pivots, std::span<std::byte> flags, ByteWriter& out) {
  std::ranges::fill(flags, std::byte{0});
  size_t count = 0;
  for (size_t i = 0; i < pivots.size(); ++i) {
    if (pivots[i] == kernels::kNoPivot) continue;
    set_bit(flags, i);
    ++count;
  }
  const auto places = out.claim(kernels::bitmap_size(count * kPlaceBits));
  std::ranges::fill(places, std::byte{0});
  size_t bit = 0;
  for (const uint8_t pivot : pivots) {
    if (pivot == kernels::kNoPivot) continue;
    for (unsigned i = 0; i < kPlaceBits; ++i, ++bit) {
      if ((pivot >> i & 1) != 0) set_bit(places, bit);
    }
  }
}

void read_pivots(ByteReader& in, std::span<const std::byte> flags, std::span<uint8_t> pivots) {
  size_t count = 0;
  for (size_t i = 0; i < pivots.size(); ++i) count += bit_at(flags, i) ? 1 : 0;
  const auto places = in.take(kernels::bitmap_size(count * kPlaceBits));
  check_padding(places, count, kPlaceBits);
  size_t bit = 0;
  for (size_t i = 0; i < pivots.size(); ++i) {
    pivots[i] = kernels::kNoPivot;
    if (!bit_at(flags, i)) continue;
    pivots[i] = 0;
    for (unsigned k = 0; k < kPlaceBits; ++k, ++bit)
      pivots[i] |= static_cast<uint8_t>(bit_at(places, bit) ? 1U << k : 0U);
  }
}

/// Tokens of little entropy with a bit less than others; tiles of 64, rotated where an element stands out
/// (docs/operators.md, "tah"). Source: TAH-Quant, He et al. 2025, arXiv 2506.01352.
class Tah : public Codec {
 public:
  Tah(CodecIdentity identity, unsigned bits, std::optional<Fraction> share, float factor)
      : Codec(std::move(identity)), bits_(bits), share_(share), factor_(factor) {}

  at::Tensor reconstruct(const at::Tensor& x, const MessageContext& /*context*/) const override {
    if (x.numel() == 0) return x.clone(at::MemoryFormat::Contiguous);
    const Tokens shape = tokens_of(meta_of(x));
    check_largest(largest_magnitude(x), kOverflow, kWhat);
    const at::Tensor tokens = x.contiguous().view({-1, static_cast<int64_t>(shape.width)});
    const at::Tensor tiles = tokens.view({-1, static_cast<int64_t>(kernels::kTile)});
    const at::Tensor magnitudes = tiles.abs();
    const auto [largest, place] = magnitudes.max(1, /*keepdim=*/true);
    const at::Tensor second = magnitudes.scatter(1, place, 0).amax(1, /*keepdim=*/true);
    const at::Tensor has_pivot =
        largest.ge(second.mul(static_cast<double>(factor_))).logical_and(largest.gt(0));
    const at::Tensor values = at::where(has_pivot, rotated_blocks(swapped(tiles, place)), tiles);

    const at::Tensor levels = levels_of(tokens, shape);
    const at::Tensor exact_least = values.amin(1, /*keepdim=*/true).add(0);  // never -0
    const at::Tensor exact_step = values.amax(1, /*keepdim=*/true).add(0).sub(exact_least).div(levels);
    check_range(std::max(largest_magnitude(exact_least), largest_magnitude(exact_step)));
    const at::Tensor least = exact_least.to(at::kHalf).to(at::kFloat);
    const at::Tensor step = exact_step.to(at::kHalf).to(at::kFloat);
    const at::Tensor is_flat = step.eq(0);
    const at::Tensor steps = values.sub(least).div(at::where(is_flat, at::ones_like(step), step)).round();
    const at::Tensor codes = steps.clamp_min(0).minimum(levels).masked_fill(is_flat, 0);
    const at::Tensor seen = least.add(codes.mul(step));
    return at::where(has_pivot, swapped(rotated_blocks(seen), place), seen).view(x.sizes());
  }

  bool is_row_wise() const override { return true; }

 protected:
  PayloadSize do_payload_size(const MessageMeta& meta) const override {
    const Tokens tokens = tokens_of(meta);
    const size_t tiles = tokens.tiles();
    return {kernels::bitmap_size(tokens.count()) + kernels::bitmap_size(tiles) + tiles * kTileRange +
                code_bytes(tokens) + kernels::bitmap_size(tiles * kPlaceBits),
            false};
  }

  void do_encode(std::span<const float> x, const MessageMeta& meta, const MessageContext& /*context*/,
                 ByteWriter& out) const override {
    const Tokens tokens = tokens_of(meta);
    const auto narrow = out.claim(kernels::bitmap_size(tokens.count()));
    choose_narrow(x, tokens, narrow);
    const auto flags = out.claim(kernels::bitmap_size(tokens.tiles()));
    const auto ranges = out.claim(tokens.tiles() * kTileRange);
    const auto codes = out.claim(code_bytes(tokens));
    const auto pivots = own_pivots(tokens.tiles());
    std::atomic<uint32_t> largest = 0;
    std::atomic<uint32_t> largest_of_ranges = 0;
    for_tokens(tokens, narrow, [&](size_t token, unsigned bits, size_t code) {
      const size_t tile = token * tokens.tiles_a_token();
      const auto seen =
          kernels::encode_tiles(x.subspan(token * tokens.width, tokens.width), factor_, bits,
                                pivots.subspan(tile, tokens.tiles_a_token()),
                                ranges.subspan(tile * kTileRange, tokens.tiles_a_token() * kTileRange),
                                codes.subspan(code, kernels::packed_size(tokens.width, bits)));
      raise_to(largest, seen.element);
      raise_to(largest_of_ranges, seen.range);
    });
    check_largest(largest, kOverflow, kWhat);
    check_range(largest_of_ranges);
    write_pivots(pivots, flags, out);
  }

  void do_decode(ByteReader& in, const MessageMeta& meta, const MessageContext& /*context*/,
                 std::span<float> out) const override {
    const Tokens tokens = tokens_of(meta);
    const auto narrow = in.take(kernels::bitmap_size(tokens.count()));
    check_narrow(narrow, tokens);
    const auto flags = in.take(kernels::bitmap_size(tokens.tiles()));
    check_padding(flags, tokens.tiles(), 1);
    const auto ranges = in.take(tokens.tiles() * kTileRange);
    check_ranges(ranges);
    const auto codes = in.take(code_bytes(tokens));
    const auto pivots = own_pivots(tokens.tiles());
    read_pivots(in, flags, pivots);
    std::atomic<bool> is_valid = true;
    for_tokens(tokens, narrow, [&](size_t token, unsigned bits, size_t code) {
      const size_t tile = token * tokens.tiles_a_token();
      if (!kernels::decode_tiles(pivots.subspan(tile, tokens.tiles_a_token()),
                                 ranges.subspan(tile * kTileRange, tokens.tiles_a_token() * kTileRange),
                                 codes.subspan(code, kernels::packed_size(tokens.width, bits)), bits,
                                 out.subspan(token * tokens.width, tokens.width))) {
        is_valid = false;
      }
    });
    if (!is_valid) throw WireError("a tile whose step is 0 has a code that is not");
  }

 private:
  // A rotation makes an element at most 8 times as large, and what is far below this is past fp16 anyway.
  static constexpr uint32_t kOverflow = (127U + 121U) << 23;  // 2^121
  static constexpr const char* kWhat = "a rotation, 2^121";

  Tokens tokens_of(const MessageMeta& meta) const {
    const auto& shape = meta.shape;
    if (shape.size() < 2 || shape.back() % static_cast<int64_t>(kernels::kTile) != 0) {
      throw InputError(
          "codec {} takes messages of two dimensions or more, the last of them a multiple of {}, found shape "
          "{}",
          spec(), kernels::kTile, shape_text(shape));
    }
    const auto width = static_cast<size_t>(shape.back());
    return {meta.rows(), meta.row_size() / width, width};
  }

  /// Tokens of a sample that take a bit less.
  size_t narrow_of(const Tokens& tokens) const { return share_ ? share_->floor_of(tokens.each) : 0; }

  size_t code_bytes(const Tokens& tokens) const {
    return tokens.samples * (tokens.each * bits_ - narrow_of(tokens)) * (tokens.width / 8);
  }

  /// Calls work(token, bits, first byte of its codes) for every token; threads share them.
  template <class Work>
  void for_tokens(const Tokens& tokens, std::span<const std::byte> narrow, const Work& work) const {
    tokens.in_shares([&](size_t first, size_t last) {
      size_t code = 0;
      for (size_t token = 0; token < last; ++token) {
        const unsigned bits = bits_ - (bit_at(narrow, token) ? 1 : 0);
        if (token >= first) work(token, bits, code);
        code += kernels::packed_size(tokens.width, bits);
      }
    });
  }

  /// 2^bits - 1 for every tile of tokens [N, W], [tiles, 1].
  at::Tensor levels_of(const at::Tensor& tokens, const Tokens& shape) const {
    const auto levels = [](unsigned bits) { return static_cast<double>((1U << bits) - 1); };
    at::Tensor all = at::ones_like(tokens.narrow(1, 0, 1)).mul(levels(bits_));
    if (const size_t count = narrow_of(shape); count > 0) {
      const auto each = static_cast<int64_t>(shape.each);
      // Keys are distinct: the entropy first, then the lower index.
      const at::Tensor keys = entropies_of(tokens)
                                  .view(at::kInt)
                                  .to(at::kLong)
                                  .bitwise_left_shift(32)
                                  .view({-1, each})
                                  .add(at::arange(each, tokens.options().dtype(at::kLong)));
      const at::Tensor least = std::get<1>(keys.topk(static_cast<int64_t>(count), 1, /*largest=*/false));
      all = all.view({-1, each}).scatter(1, least, levels(bits_ - 1));
    }
    return all.view({-1, 1}).expand({-1, static_cast<int64_t>(shape.tiles_a_token())}).reshape({-1, 1});
  }

  /// Sets the bits of each sample's tokens of least entropy.
  void choose_narrow(std::span<const float> x, const Tokens& tokens, std::span<std::byte> narrow) const {
    std::ranges::fill(narrow, std::byte{0});
    const size_t count = narrow_of(tokens);
    if (count == 0) return;
    thread_local std::vector<uint64_t> own_keys;
    std::vector<uint64_t>& keys = own_keys;  // this thread's, whoever works
    keys.resize(tokens.count());
    tokens.in_shares([&](size_t first, size_t last) {
      for (size_t i = first; i < last; ++i) {
        const float entropy = kernels::entropy(x.subspan(i * tokens.width, tokens.width));
        keys[i] = uint64_t{std::bit_cast<uint32_t>(entropy)} << 32 | i;
      }
    });
    for (size_t sample = 0; sample < tokens.samples; ++sample) {
      const auto own = std::span(keys).subspan(sample * tokens.each, tokens.each);
      std::ranges::nth_element(own, own.begin() + static_cast<ptrdiff_t>(count) - 1);
      for (const uint64_t key : own.first(count)) set_bit(narrow, key & 0xffffffff);
    }
  }

  void check_narrow(std::span<const std::byte> narrow, const Tokens& tokens) const {
    check_padding(narrow, tokens.count(), 1);
    for (size_t sample = 0; sample < tokens.samples; ++sample) {
      size_t count = 0;
      for (size_t i = 0; i < tokens.each; ++i) count += bit_at(narrow, sample * tokens.each + i) ? 1 : 0;
      if (count != narrow_of(tokens)) {
        throw WireError("sample {} has {} tokens of {} bits, not {}", sample, count, bits_ - 1,
                        narrow_of(tokens));
      }
    }
  }

  unsigned bits_;                  ///< of a code of most tokens
  std::optional<Fraction> share_;  ///< of tokens with a bit less; none: 0
  float factor_;                   ///< by which a pivot stands above all others
};

}  // namespace

std::unique_ptr<Codec> make_tah(CodecIdentity identity, OperatorSpec spec) {
  constexpr double kMostFactor = 1e6;
  const auto bits =
      static_cast<unsigned>(spec.integer(spec.argument("the bits a value"), "the bits of a value", 3, 4));
  const std::string share_text = spec.option("share", "0.2");
  const auto share = Fraction::parse(share_text);
  if (!share && share_text != "0")
    spec.reject("share", share_text, "a decimal from 0 to 1 of at most 9 places");
  const std::string factor_text = spec.option("factor", "2");
  const auto factor = parse_decimal(factor_text);
  if (!factor || *factor < 1 || *factor > kMostFactor) {
    spec.reject("factor", factor_text, "a decimal from 1 to 1000000");
  }
  spec.finish();
  return std::make_unique<Tah>(std::move(identity), bits, share, static_cast<float>(*factor));
}

}  // namespace strait
