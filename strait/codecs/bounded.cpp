#include <ATen/core/ivalue.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "strait/codecs/codec.h"
#include "strait/codecs/composed.h"
#include "strait/codecs/fraction.h"
#include "strait/codecs/groups.h"
#include "strait/codecs/moments.h"
#include "strait/codecs/quant_group.h"

namespace strait {
namespace {

constexpr unsigned kMostBits = 8;
constexpr uint8_t kRaw = 32;  // in the place of the bits, for a group that is sent as float32

/// The fewest bits of `quant` for each group that keep the error's norm below a share of the group's
/// (docs/operators.md, "bounded"). Source: Evans and Aamodt 2021 (AC-GC).
class Bounded : public Codec {
 public:
  Bounded(CodecIdentity identity, Scope scope, float share)
      : Codec(std::move(identity)), scope_(scope), share_(share) {}

  at::Tensor reconstruct(const at::Tensor& x, const MessageContext& /*context*/) const override {
    if (x.numel() == 0) return x.clone(at::MemoryFormat::Contiguous);
    if (!are_finite(x)) reject();
    const Grid grid = scope_.grid(meta_of(x));
    const at::Tensor sizes = grid.sizes(x);
    const at::Tensor values = grid.as_groups(scope_.in_order(x), Grid::Filler::last_element);
    const auto [least, greatest] = at::aminmax(values, 1, /*keepdim=*/true);
    const auto norm = [&](const at::Tensor& of) {
      return norms_about({of, sizes, {}}, at::zeros_like(sizes, at::kFloat));
    };
    const at::Tensor most = norm(values).mul(static_cast<double>(share_));
    const at::Tensor extent = greatest.sub(least);
    const at::Tensor is_usable = extent.add(most).isfinite().logical_and(least.add(extent).isfinite());
    const at::Tensor tame = values.masked_fill(is_usable.logical_not(), 0);
    at::Tensor seen = values;
    for (unsigned bits = kMostBits; bits > 0; --bits) {
      const at::Tensor coarser = reconstruct_groups(tame, bits, std::nullopt);
      const at::Tensor is_near = norm(values.sub(coarser)).le(most).logical_and(is_usable);
      seen = at::where(is_near, coarser, seen);
    }
    return scope_.from_order(grid.from_groups(seen), x);
  }

  bool is_row_wise() const override { return scope_.is_row_wise(); }

 protected:
  PayloadSize do_payload_size(const MessageMeta& meta) const override {
    const Grid grid = scope_.grid(meta);
    size_t bound = 0;
    const size_t last = grid.group(grid.groups_a_row() - 1).size;
    for (const auto& [size, count] : {std::pair{grid.group_size, grid.groups_a_row() - 1}, {last, size_t{1}}}) {
      bound += grid.rows * count * (1 + std::max(size * sizeof(float), kRangeSize + size));
    }
    return {bound, false};
  }

  void do_encode(std::span<const float> x, const MessageMeta& meta, const MessageContext& /*context*/,
                 ByteWriter& out) const override {
    const Grid grid = scope_.grid(meta);
    const auto all_bits = out.claim(grid.groups());
    scope_.with_ordered(x, meta, [&](std::span<const float> ordered) {
      in_runs(grid, [&](size_t first, size_t last) {
        for (size_t i = first; i < last; ++i) {
          const Grid::Group group = grid.group(i);
          all_bits[i] = std::byte{bits_for(ordered.subspan(group.begin, group.size))};
        }
      });
      for (size_t i = 0; i < grid.groups(); ++i) {
        const Grid::Group group = grid.group(i);
        write_group(ordered.subspan(group.begin, group.size), std::to_integer<uint8_t>(all_bits[i]), out);
      }
    });
  }

  void do_decode(ByteReader& in, const MessageMeta& meta, const MessageContext& /*context*/,
                 std::span<float> out) const override {
    const Grid grid = scope_.grid(meta);
    const auto all_bits = in.take(grid.groups());
    scope_.fill_ordered(out, meta, [&](std::span<float> ordered) {
      for (size_t i = 0; i < grid.groups(); ++i) {
        const Grid::Group group = grid.group(i);
        read_group(in, std::to_integer<uint8_t>(all_bits[i]), ordered.subspan(group.begin, group.size));
      }
    });
  }

 private:
  [[noreturn]] static void reject() { throw NumericError("a value is not finite"); }

  uint8_t bits_for(std::span<const float> x) const {
    const kernels::Range range = kernels::range_of(x);
    if (!std::isfinite(range.lo) || !std::isfinite(range.hi)) reject();
    const float most = norm_about(x, 0) * share_;
    if (!kernels::is_usable(range) || !std::isfinite(range.hi - range.lo + most)) return kRaw;
    std::vector<std::byte> codes(kernels::packed_size(x.size(), kMostBits));
    std::vector<float> error(x.size());
    for (unsigned bits = 1; bits <= kMostBits; ++bits) {
      const auto packed = std::span(codes).first(kernels::packed_size(x.size(), bits));
      kernels::quantise(x, range, bits, packed);
      kernels::dequantise(packed, range, bits, error);
      for (size_t i = 0; i < x.size(); ++i) error[i] = x[i] - error[i];
      if (norm_about(error, 0) <= most) return static_cast<uint8_t>(bits);
    }
    return kRaw;
  }

  static void write_group(std::span<const float> x, uint8_t bits, ByteWriter& out) {
    if (bits == kRaw) {
      std::memcpy(out.claim(x.size_bytes()).data(), x.data(), x.size_bytes());
      return;
    }
    const kernels::Range range = kernels::range_of(x);
    write_range(range, out);
    kernels::quantise(x, range, bits, out.claim(kernels::packed_size(x.size(), bits)));
  }

  static void read_group(ByteReader& in, uint8_t bits, std::span<float> out) {
    if (bits == kRaw) {
      const auto bytes = in.take(out.size_bytes());
      std::memcpy(out.data(), bytes.data(), bytes.size());
      const kernels::Range range = kernels::range_of(out);
      if (!std::isfinite(range.lo) || !std::isfinite(range.hi))
        throw WireError("a float32 value is not finite");
      return;
    }
    if (bits == 0 || bits > kMostBits)
      throw WireError("a group has {} bits, not 1 to {} or {}", bits, kMostBits, kRaw);
    const kernels::Range range = read_range(in);
    const auto codes = in.take(kernels::packed_size(out.size(), bits));
    check_codes(codes, out.size(), range, bits);
    kernels::dequantise(codes, range, bits, out);
  }

  Scope scope_;
  float share_;  ///< of the group's norm that the error's may be
};

}  // namespace

std::unique_ptr<Codec> make_bounded(CodecIdentity identity, OperatorSpec spec) {
  const std::string& argument = spec.argument("the share of the norm that may be lost");
  const auto share = Fraction::parse(argument);
  if (!share) spec.reject("the share", argument, "a decimal above 0, at most 1, of at most 9 places");
  const Scope scope = Scope::from(spec, "sample");
  spec.finish();
  return std::make_unique<Bounded>(std::move(identity), scope, static_cast<float>(share->value()));
}

}  // namespace strait
