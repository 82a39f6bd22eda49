#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include "strait/base/text.h"
#include "strait/codecs/codec.h"
#include "strait/codecs/quant_group.h"

namespace strait {
namespace {

enum class Scope { tensor, sample, block };

/// Where a group stands among all elements and bytes of codes.
struct Group {
  size_t begin = 0;
  size_t size = 0;
  size_t code = 0;
  size_t code_size = 0;
};

/// How a tensor falls into groups: `rows` rows of `row_size` elements, and each row into groups of
/// `group_size`, the last of which may be short.
struct Grid {
  size_t rows;
  size_t row_size;
  size_t group_size;
  unsigned bits;  ///< of a code

  size_t groups_a_row() const { return (row_size + group_size - 1) / group_size; }
  size_t groups() const { return rows * groups_a_row(); }

  /// Groups but the last of a row end on a byte, so a row's codes take as many bytes as one long group.
  size_t code_bytes() const { return rows * kernels::packed_size(row_size, bits); }

  Group group(size_t number) const {
    const size_t row = number / groups_a_row();
    const size_t begin = number % groups_a_row() * group_size;
    const size_t size = std::min(group_size, row_size - begin);
    return {row * row_size + begin, size, row * kernels::packed_size(row_size, bits) + begin / 8 * bits,
            kernels::packed_size(size, bits)};
  }

  /// The elements as [groups, group_size]; short groups are filled up with copies of the row's last
  /// element, which change no range.
  at::Tensor as_groups(const at::Tensor& x) const {
    at::Tensor all = x.view({static_cast<int64_t>(rows), static_cast<int64_t>(row_size)});
    if (const size_t rest = row_size % group_size; rest != 0) {
      const auto missing = static_cast<int64_t>(group_size - rest);
      all = at::cat({all, all.narrow(1, all.size(1) - 1, 1).expand({-1, missing})}, 1);
    }
    return all.reshape({-1, static_cast<int64_t>(group_size)});
  }
};

constexpr int64_t kGrain = 1 << 15;  // elements that a thread handles at least

/// Calls work(first, last) for runs of groups that follow each other, which threads share.
template <class Work>
void in_runs(const Grid& grid, const Work& work) {
  const auto grain = std::max<int64_t>(1, kGrain / static_cast<int64_t>(grid.group_size));
  if (grid.groups() == 1) return work(0, 1);
  at::parallel_for(0, static_cast<int64_t>(grid.groups()), grain, [&](int64_t first, int64_t last) {
    work(static_cast<size_t>(first), static_cast<size_t>(last));
  });
}

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

/// The dither of what begins `elements` later.
kernels::Dither advanced(kernels::Dither dither, size_t elements) {
  dither.first_index += elements;
  return dither;
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

/// b bits per element between the least and the greatest value of the tensor, of each sample, or of each
/// block of a sample (docs/operators.md, "quant").
class Quant : public Codec {
 public:
  Quant(CodecIdentity identity, unsigned bits, Scope scope, size_t block, bool stochastic)
      : Codec(std::move(identity)), bits_(bits), scope_(scope), block_(block), stochastic_(stochastic) {}

  at::Tensor reconstruct(const at::Tensor& x, const MessageContext& context) const override {
    if (x.numel() == 0) return x.clone(at::MemoryFormat::Contiguous);
    const MessageMeta meta = meta_of(x);
    const Grid grid = grid_of(meta);
    std::optional<at::Tensor> dither;
    if (stochastic_) {
      const auto first = static_cast<int64_t>(context.first_row * meta.row_size());
      const auto index = at::arange(first, first + x.numel(), x.options().dtype(at::kLong));
      dither = grid.as_groups(dither_at(make_dither(context), index));
    }
    const at::Tensor groups = reconstruct_groups(grid.as_groups(x.contiguous()), bits_, dither);
    return groups.view({static_cast<int64_t>(grid.rows), -1})
        .narrow(1, 0, static_cast<int64_t>(grid.row_size))
        .reshape(x.sizes())
        .contiguous();
  }

  at::Tensor reference(const at::Tensor& x) const override {
    if (scope_ == Scope::tensor)
      return reference_groups(x.reshape({1, -1}), bits_, stochastic_).view(x.sizes());
    const at::Tensor rows = x.reshape({x.size(0), -1});
    if (scope_ == Scope::sample) return reference_groups(rows, bits_, stochastic_).view(x.sizes());
    const auto block = static_cast<int64_t>(block_);
    const int64_t whole = rows.size(1) / block * block;
    const at::Tensor blocks = rows.narrow(1, 0, whole).reshape({-1, block});
    const at::Tensor head = reference_groups(blocks, bits_, stochastic_).view({x.size(0), whole});
    if (whole == rows.size(1)) return head.view(x.sizes());
    const at::Tensor tail = rows.narrow(1, whole, rows.size(1) - whole);
    return at::cat({head, reference_groups(tail, bits_, stochastic_)}, 1).view(x.sizes());
  }

  bool is_row_wise() const override { return scope_ != Scope::tensor; }

 protected:
  PayloadSize do_payload_size(const MessageMeta& meta) const override {
    const Grid grid = grid_of(meta);
    return {grid.groups() * kRangeSize + grid.code_bytes(), true};
  }

  void do_encode(std::span<const float> x, const MessageMeta& meta, const MessageContext& context,
                 ByteWriter& out) const override {
    const Grid grid = grid_of(meta);
    kernels::Dither dither = make_dither(context);
    dither.first_index = context.first_row * meta.row_size();
    const auto ranges = out.claim(grid.groups() * kRangeSize);
    const auto codes = out.claim(grid.code_bytes());
    const auto range_bytes = [&](size_t group) { return ranges.subspan(group * kRangeSize, kRangeSize); };
    if (grid.groups() == 1) return encode_shared(x, dither, range_bytes(0), codes);
    const auto part = [&](const Group& group) { return x.subspan(group.begin, group.size); };
    in_runs(grid, [&](size_t first, size_t last) {
      Group group = grid.group(first);
      auto range = kernels::range_of(part(group));
      for (size_t i = first; i < last; ++i) {
        ByteWriter writer(range_bytes(i));
        write_range(sendable(range), writer);
        const bool has_next = i + 1 < last;
        const Group next = has_next ? grid.group(i + 1) : Group{};
        range = quantise(part(group), range, advanced(dither, group.begin),
                         codes.subspan(group.code, group.code_size), part(next));
        group = next;
      }
    });
  }

  void do_decode(ByteReader& in, const MessageMeta& meta, const MessageContext& /*context*/,
                 std::span<float> out) const override {
    const Grid grid = grid_of(meta);
    const auto ranges = in.take(grid.groups() * kRangeSize);
    const auto codes = in.take(grid.code_bytes());
    in_runs(grid, [&](size_t first, size_t last) {
      for (size_t i = first; i < last; ++i) {
        const Group group = grid.group(i);
        ByteReader reader(ranges.subspan(i * kRangeSize, kRangeSize));
        const auto range = read_range(reader);
        const auto packed = codes.subspan(group.code, group.code_size);
        check_codes(packed, group.size, range, bits_);
        in_parts(group.size, grid.groups() == 1, [&](size_t begin, size_t count) {
          kernels::dequantise(packed.subspan(begin / 8 * bits_, kernels::packed_size(count, bits_)), range,
                              bits_, out.subspan(group.begin + begin, count));
        });
      }
    });
  }

 private:
  Grid grid_of(const MessageMeta& meta) const {
    const size_t row = meta.row_size();
    switch (scope_) {
      case Scope::tensor:
        return {1, meta.elements(), meta.elements(), bits_};
      case Scope::sample:
        return {meta.rows(), row, row, bits_};
      case Scope::block:
        break;
    }
    return {meta.rows(), row, std::min(block_, row), bits_};
  }

  /// Encodes the only group: threads share its elements rather than groups.
  void encode_shared(std::span<const float> x, kernels::Dither dither, std::span<std::byte> range_bytes,
                     std::span<std::byte> codes) const {
    const auto range = range_of_all(x);
    ByteWriter writer(range_bytes);
    write_range(range, writer);
    in_parts(x.size(), true, [&](size_t begin, size_t count) {
      quantise(x.subspan(begin, count), range, advanced(dither, begin),
               codes.subspan(begin / 8 * bits_, kernels::packed_size(count, bits_)), {});
    });
  }

  kernels::Range quantise(std::span<const float> x, kernels::Range range, kernels::Dither dither,
                          std::span<std::byte> out, std::span<const float> next) const {
    if (stochastic_) return kernels::quantise_stochastic(x, range, bits_, dither, out, next);
    return kernels::quantise(x, range, bits_, out, next);
  }

  unsigned bits_;
  Scope scope_;
  size_t block_;
  bool stochastic_;
};

}  // namespace

std::unique_ptr<Codec> make_quant(CodecIdentity identity, OperatorSpec spec) {
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
  const auto make = [&](Scope kind, size_t block) {
    return std::make_unique<Quant>(std::move(identity), bits, kind, block, stochastic);
  };
  if (scope == "tensor") return make(Scope::tensor, 0);
  if (scope == "sample") return make(Scope::sample, 0);
  constexpr std::string_view kBlock = "block:";
  if (!scope.starts_with(kBlock)) spec.reject("scope", scope, "tensor, sample or block:N");
  const int64_t block = parse_integer(std::string_view(scope).substr(kBlock.size()), "a block", 8, kMaxBlock);
  if (block % 8 != 0) spec.reject("scope", scope, "block:N with N a multiple of 8");
  return make(Scope::block, static_cast<size_t>(block));
}

}  // namespace strait
