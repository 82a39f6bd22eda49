#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <limits>

#include "strait/base/text.h"
#include "strait/codecs/codec.h"
#include "strait/codecs/quant_group.h"

namespace strait {
namespace {

enum class Scope { tensor, sample, block };

/// How a tensor falls into groups: `rows` rows of `row_size` elements, and each row into groups of
/// `group_size`, the last of which may be short.
struct Grid {
  size_t rows;
  size_t row_size;
  size_t group_size;

  size_t groups() const { return rows * ((row_size + group_size - 1) / group_size); }
};

/// b bits an element between the least and the greatest value of the tensor, of each sample, or of each
/// block of a sample (docs/operators.md, "quant").
class Quant : public Codec {
 public:
  Quant(unsigned bits, Scope scope, size_t block, bool stochastic)
      : bits_(bits), scope_(scope), block_(block), stochastic_(stochastic) {}

  at::Tensor reconstruct(const at::Tensor& x, const MessageContext& context) const override {
    if (x.numel() == 0) return x.clone(at::MemoryFormat::Contiguous);
    const MessageMeta meta = meta_of(x);
    const Grid grid = grid_of(meta);
    std::optional<at::Tensor> dither;
    if (stochastic_) {
      const auto first = static_cast<int64_t>(context.first_row * meta.row_size());
      const auto index = at::arange(first, first + x.numel(), x.options().dtype(at::kLong));
      dither = as_groups(strait::dither_at(make_dither(context), index), grid);
    }
    const at::Tensor groups = reconstruct_groups(as_groups(x.contiguous(), grid), bits_, dither);
    return groups.view({static_cast<int64_t>(grid.rows), -1})
        .narrow(1, 0, static_cast<int64_t>(grid.row_size))
        .reshape(x.sizes())
        .contiguous();
  }

 protected:
  PayloadSize do_payload_size(const MessageMeta& meta) const override {
    const Grid grid = grid_of(meta);
    // Groups but the last of a row end on a byte, so a row's codes take as many bytes as one long group.
    return {grid.groups() * kRangeSize + grid.rows * kernels::packed_size(grid.row_size, bits_), true};
  }

  void do_encode(std::span<const float> x, const MessageMeta& meta, const MessageContext& context,
                 ByteWriter& out) const override {
    const Grid grid = grid_of(meta);
    ByteWriter ranges(out.claim(grid.groups() * kRangeSize));
    kernels::Dither dither = make_dither(context);
    dither.first_index = context.first_row * meta.row_size();
    for_each_group(grid, x, [&](std::span<const float> group) {
      const auto range = sendable_range(group);
      write_range(range, ranges);
      const auto codes = out.claim(kernels::packed_size(group.size(), bits_));
      if (stochastic_) {
        kernels::quantise_stochastic(group, range, bits_, dither, codes);
        dither.first_index += group.size();
      } else {
        kernels::quantise(group, range, bits_, codes);
      }
    });
  }

  void do_decode(ByteReader& in, const MessageMeta& meta, const MessageContext& /*context*/,
                 std::span<float> out) const override {
    const Grid grid = grid_of(meta);
    ByteReader ranges(in.take(grid.groups() * kRangeSize));
    for_each_group(grid, out, [&](std::span<float> group) {
      const auto range = read_range(ranges);
      read_codes(in.take(kernels::packed_size(group.size(), bits_)), range, bits_, group);
    });
  }

 private:
  Grid grid_of(const MessageMeta& meta) const {
    const size_t row = meta.row_size();
    switch (scope_) {
      case Scope::tensor:
        return {1, meta.elements(), meta.elements()};
      case Scope::sample:
        return {meta.rows(), row, row};
      case Scope::block:
        break;
    }
    return {meta.rows(), row, std::min(block_, row)};
  }

  template <class T, class Work>
  static void for_each_group(const Grid& grid, std::span<T> elements, Work work) {
    for (size_t row = 0; row < grid.rows; ++row) {
      const auto part = elements.subspan(row * grid.row_size, grid.row_size);
      for (size_t begin = 0; begin < part.size(); begin += grid.group_size) {
        work(part.subspan(begin, std::min(grid.group_size, part.size() - begin)));
      }
    }
  }

  /// The elements as [groups, group_size]; short groups are filled up with copies of the row's last
  /// element, which change no range.
  static at::Tensor as_groups(const at::Tensor& x, const Grid& grid) {
    at::Tensor rows = x.view({static_cast<int64_t>(grid.rows), static_cast<int64_t>(grid.row_size)});
    if (const size_t rest = grid.row_size % grid.group_size; rest != 0) {
      const auto missing = static_cast<int64_t>(grid.group_size - rest);
      rows = at::cat({rows, rows.narrow(1, rows.size(1) - 1, 1).expand({-1, missing})}, 1);
    }
    return rows.reshape({-1, static_cast<int64_t>(grid.group_size)});
  }

  unsigned bits_;
  Scope scope_;
  size_t block_;
  bool stochastic_;
};

}  // namespace

std::unique_ptr<Codec> make_quant(CodecSpec spec) {
  constexpr int64_t kMaxBlock = int64_t{1} << 30;
  const auto bits = static_cast<unsigned>(
      parse_integer(spec.argument("the bits a value"), "the bits of a quantised value", 1, 8));
  const std::string scope = spec.option("scope", "tensor");
  const std::string rounding = spec.option("rounding", "nearest");
  spec.finish();
  if (rounding != "nearest" && rounding != "stochastic") {
    spec.reject("rounding", rounding, "nearest or stochastic");
  }
  const bool stochastic = rounding == "stochastic";
  if (scope == "tensor") return std::make_unique<Quant>(bits, Scope::tensor, 0, stochastic);
  if (scope == "sample") return std::make_unique<Quant>(bits, Scope::sample, 0, stochastic);
  constexpr std::string_view kBlock = "block:";
  if (!scope.starts_with(kBlock)) spec.reject("scope", scope, "tensor, sample or block:N");
  const int64_t block = parse_integer(std::string_view(scope).substr(kBlock.size()), "a block", 8, kMaxBlock);
  if (block % 8 != 0) spec.reject("scope", scope, "block:N with N a multiple of 8");
  return std::make_unique<Quant>(bits, Scope::block, static_cast<size_t>(block), stochastic);
}

}  // namespace strait
