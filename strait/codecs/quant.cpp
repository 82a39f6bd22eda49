#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <limits>
#include <mutex>

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

  size_t groups_a_row() const { return (row_size + group_size - 1) / group_size; }
  size_t groups() const { return rows * groups_a_row(); }
};

/// Where a group stands among all elements, groups and bytes of codes.
struct Group {
  size_t number;
  size_t begin;
  size_t size;
  size_t code;
  size_t code_size;
  bool is_all;  ///< the only one: threads share its elements rather than the groups
};

constexpr int64_t kGrain = 1 << 15;  // elements that a thread handles at least

/// Calls work(begin, count) for all of `size` elements, for parts cut at multiples of 8 where threads share
/// them.
template <class Work>
void in_parts(size_t size, bool share, const Work& work) {
  if (!share) return work(0, size);
  at::parallel_for(0, static_cast<int64_t>(size + 7) / 8, kGrain / 8, [&](int64_t begin, int64_t end) {
    const size_t first = static_cast<size_t>(begin) * 8;
    work(first, std::min(static_cast<size_t>(end) * 8, size) - first);
  });
}

/// sendable_range() of elements that threads share.
kernels::Range range_of_all(std::span<const float> x) {
  std::mutex mutex;
  kernels::Range all{x[0], x[0]};
  in_parts(x.size(), true, [&](size_t begin, size_t count) {
    const auto part = sendable_range(x.subspan(begin, count));
    const std::lock_guard lock(mutex);
    all = {std::min(all.lo, part.lo), std::max(all.hi, part.hi)};
  });
  return sendable({all.lo + 0.0F, all.hi + 0.0F});
}

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

  bool is_row_wise() const override { return scope_ != Scope::tensor; }

 protected:
  PayloadSize do_payload_size(const MessageMeta& meta) const override {
    const Grid grid = grid_of(meta);
    // Groups but the last of a row end on a byte, so a row's codes take as many bytes as one long group.
    return {grid.groups() * kRangeSize + grid.rows * kernels::packed_size(grid.row_size, bits_), true};
  }

  void do_encode(std::span<const float> x, const MessageMeta& meta, const MessageContext& context,
                 ByteWriter& out) const override {
    const Grid grid = grid_of(meta);
    kernels::Dither dither = make_dither(context);
    dither.first_index = context.first_row * meta.row_size();
    const auto ranges = out.claim(grid.groups() * kRangeSize);
    const auto codes = out.claim(grid.rows * kernels::packed_size(grid.row_size, bits_));
    for_each_group(grid, [&](const Group& group) {
      const auto part = x.subspan(group.begin, group.size);
      const auto range = group.is_all ? range_of_all(part) : sendable_range(part);
      ByteWriter writer(ranges.subspan(group.number * kRangeSize, kRangeSize));
      write_range(range, writer);
      quantise(part, range, dither, group.begin, codes.subspan(group.code, group.code_size), group.is_all);
    });
  }

  void do_decode(ByteReader& in, const MessageMeta& meta, const MessageContext& /*context*/,
                 std::span<float> out) const override {
    const Grid grid = grid_of(meta);
    const auto ranges = in.take(grid.groups() * kRangeSize);
    const auto codes = in.take(grid.rows * kernels::packed_size(grid.row_size, bits_));
    for_each_group(grid, [&](const Group& group) {
      ByteReader reader(ranges.subspan(group.number * kRangeSize, kRangeSize));
      const auto range = read_range(reader);
      const auto packed = codes.subspan(group.code, group.code_size);
      check_codes(packed, group.size, range, bits_);
      in_parts(group.size, group.is_all, [&](size_t begin, size_t count) {
        kernels::dequantise(packed.subspan(begin / 8 * bits_, kernels::packed_size(count, bits_)), range, bits_,
                            out.subspan(group.begin + begin, count));
      });
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

  template <class Work>
  void for_each_group(const Grid& grid, const Work& work) const {
    const size_t row_codes = kernels::packed_size(grid.row_size, bits_);
    const auto visit_row = [&](size_t row) {
      for (size_t i = 0; i < grid.groups_a_row(); ++i) {
        const size_t begin = i * grid.group_size;
        const size_t size = std::min(grid.group_size, grid.row_size - begin);
        work(Group{row * grid.groups_a_row() + i, row * grid.row_size + begin, size,
                   row * row_codes + begin / 8 * bits_, kernels::packed_size(size, bits_), grid.groups() == 1});
      }
    };
    if (grid.groups() == 1) return visit_row(0);
    const auto grain = std::max<int64_t>(1, kGrain / static_cast<int64_t>(grid.row_size));
    at::parallel_for(0, static_cast<int64_t>(grid.rows), grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) visit_row(static_cast<size_t>(row));
    });
  }

  /// `first` is the place of x among the elements of the message.
  void quantise(std::span<const float> x, kernels::Range range, kernels::Dither dither, size_t first,
                std::span<std::byte> out, bool share) const {
    in_parts(x.size(), share, [&](size_t begin, size_t count) {
      const auto part = x.subspan(begin, count);
      const auto codes = out.subspan(begin / 8 * bits_, kernels::packed_size(count, bits_));
      kernels::Dither here = dither;
      here.first_index += first + begin;
      if (stochastic_) {
        kernels::quantise_stochastic(part, range, bits_, here, codes);
      } else {
        kernels::quantise(part, range, bits_, codes);
      }
    });
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
