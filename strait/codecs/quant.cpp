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
#include "strait/codecs/groups.h"
#include "strait/codecs/quant_group.h"

namespace strait {
namespace {

/// Calls work(begin, count) for all of `size` elements, for parts cut at multiples of 8 where threads share
/// them.
template <class Work>
void in_parts(size_t size, bool share, const Work& work) {
  if (!share) return work(0, size);
  at::parallel_for(0, static_cast<int64_t>(size + 7) / 8, kGroupGrain / 8, [&](int64_t begin, int64_t end) {
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
  Quant(CodecIdentity identity, unsigned bits, Scope scope, bool stochastic)
      : Codec(std::move(identity)), bits_(bits), scope_(scope), stochastic_(stochastic) {}

  at::Tensor reconstruct(const at::Tensor& x, const MessageContext& context) const override {
    if (x.numel() == 0) return x.clone(at::MemoryFormat::Contiguous);
    const MessageMeta meta = meta_of(x);
    const Grid grid = scope_.grid(meta);
    std::optional<at::Tensor> dither;
    if (stochastic_) {
      const auto first = static_cast<int64_t>(context.first_row * meta.row_size());
      const auto index = at::arange(first, first + x.numel(), x.options().dtype(at::kLong));
      dither = grid.as_groups(dither_at(make_dither(context), index), Grid::Filler::last_element);
    }
    const at::Tensor groups = grid.as_groups(x.contiguous(), Grid::Filler::last_element);
    return grid.from_groups(reconstruct_groups(groups, bits_, dither), x);
  }

  at::Tensor reference(const at::Tensor& x) const override {
    const Grid grid = scope_.grid(meta_of(x));
    const auto size = static_cast<int64_t>(grid.group_size);
    const at::Tensor rows = x.reshape({static_cast<int64_t>(grid.rows), -1});
    const int64_t whole = rows.size(1) / size * size;
    const at::Tensor groups = rows.narrow(1, 0, whole).reshape({-1, size});
    const at::Tensor head = reference_groups(groups, bits_, stochastic_).view({rows.size(0), whole});
    if (whole == rows.size(1)) return head.view(x.sizes());
    const at::Tensor tail = rows.narrow(1, whole, rows.size(1) - whole);
    return at::cat({head, reference_groups(tail, bits_, stochastic_)}, 1).view(x.sizes());
  }

  bool is_row_wise() const override { return scope_.is_row_wise(); }

 protected:
  PayloadSize do_payload_size(const MessageMeta& meta) const override {
    const Grid grid = scope_.grid(meta);
    return {grid.groups() * kRangeSize + grid.code_bytes(bits_), true};
  }

  void do_encode(std::span<const float> x, const MessageMeta& meta, const MessageContext& context,
                 ByteWriter& out) const override {
    const Grid grid = scope_.grid(meta);
    kernels::Dither dither = make_dither(context);
    dither.first_index = context.first_row * meta.row_size();
    const auto ranges = out.claim(grid.groups() * kRangeSize);
    const auto codes = out.claim(grid.code_bytes(bits_));
    const auto range_bytes = [&](size_t group) { return ranges.subspan(group * kRangeSize, kRangeSize); };
    if (grid.groups() == 1) return encode_shared(x, dither, range_bytes(0), codes);
    const auto part = [&](const Grid::Group& group) { return x.subspan(group.begin, group.size); };
    in_runs(grid, [&](size_t first, size_t last) {
      Grid::Group group = grid.group(first);
      auto range = kernels::range_of(part(group));
      for (size_t i = first; i < last; ++i) {
        ByteWriter writer(range_bytes(i));
        write_range(sendable(range), writer);
        const bool has_next = i + 1 < last;
        const Grid::Group next = has_next ? grid.group(i + 1) : Grid::Group{};
        range = quantise(part(group), range, advanced(dither, group.begin), grid.codes(codes, group, bits_),
                         part(next));
        group = next;
      }
    });
  }

  void do_decode(ByteReader& in, const MessageMeta& meta, const MessageContext& /*context*/,
                 std::span<float> out) const override {
    const Grid grid = scope_.grid(meta);
    const auto ranges = in.take(grid.groups() * kRangeSize);
    const auto codes = in.take(grid.code_bytes(bits_));
    in_runs(grid, [&](size_t first, size_t last) {
      for (size_t i = first; i < last; ++i) {
        const Grid::Group group = grid.group(i);
        ByteReader reader(ranges.subspan(i * kRangeSize, kRangeSize));
        const auto range = read_range(reader);
        const auto packed = grid.codes(codes, group, bits_);
        check_codes(packed, group.size, range, bits_);
        in_parts(group.size, grid.groups() == 1, [&](size_t begin, size_t count) {
          kernels::dequantise(packed.subspan(begin / 8 * bits_, kernels::packed_size(count, bits_)), range,
                              bits_, out.subspan(group.begin + begin, count));
        });
      }
    });
  }

 private:
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
  bool stochastic_;
};

}  // namespace

std::unique_ptr<Codec> make_quant(CodecIdentity identity, OperatorSpec spec) {
  const auto bits = static_cast<unsigned>(
      parse_integer(spec.argument("the bits a value"), "the bits of a quantised value", 1, 8));
  const Scope scope = Scope::from(spec, "tensor");
  const std::string rounding = spec.option("rounding", "nearest");
  spec.finish();
  if (rounding != "nearest" && rounding != "stochastic") {
    spec.reject("rounding", rounding, "nearest or stochastic");
  }
  return std::make_unique<Quant>(std::move(identity), bits, scope, rounding == "stochastic");
}

}  // namespace strait
