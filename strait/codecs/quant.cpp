#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "strait/codecs/codec.h"
#include "strait/codecs/composed.h"
#include "strait/codecs/fused_feedback.h"
#include "strait/codecs/groups.h"
#include "strait/codecs/quant_group.h"
#include "strait/codecs/quant_options.h"

namespace strait {
namespace {

/// sendable_range() of elements that threads share.
kernels::Range range_of_all(std::span<const float> x) {
  std::mutex mutex;
  kernels::Range all{x[0], x[0]};
  in_parts(x.size(), [&](size_t begin, size_t count) {
    const auto part = sendable_range(x.subspan(begin, count));
    const std::lock_guard lock(mutex);
    all = {std::min(all.lo, part.lo), std::max(all.hi, part.hi)};
  });
  return sendable({all.lo + 0.0F, all.hi + 0.0F});
}

/// b bits per element between the least and the greatest value of each group (docs/operators.md, "quant").
class Quant : public Codec, public FusedByKernels {
 public:
  Quant(CodecIdentity identity, unsigned bits, Scope scope, bool stochastic)
      : Codec(std::move(identity)), bits_(bits), scope_(scope), stochastic_(stochastic) {}

  at::Tensor reconstruct(const at::Tensor& x, const MessageContext& context) const override {
    if (x.numel() == 0) return x.clone(at::MemoryFormat::Contiguous);
    const Grid grid = scope_.grid(meta_of(x));
    return scope_.from_order(grid.from_groups(dequantised_groups(quantised(x, grid, context), bits_)), x);
  }

  at::Tensor device_encode(const at::Tensor& x, const MessageContext& context) const override {
    const MessageMeta meta = meta_of(x);
    if (at::Tensor message = write_by_kernels(x, scope_, form(meta, context)); message.defined())
      return message;
    const Grid grid = scope_.grid(meta);
    const QuantisedGroups groups = quantised(x, grid, context);
    return at::cat({bytes_of_rows(groups.ranges).reshape(-1),
                    packed_rows(grid.from_groups(groups.codes), bits_).reshape(-1)});
  }

  at::Tensor device_decode(const at::Tensor& payload, const MessageMeta& meta,
                           const MessageContext& context) const override {
    if (at::Tensor x = read_by_kernels(payload, meta, scope_, form(meta, context)); x.defined()) return x;
    const Grid grid = scope_.grid(meta);
    const auto ranges = static_cast<int64_t>(grid.groups() * kRangeSize);
    const at::Tensor packed = payload.narrow(0, ranges, payload.numel() - ranges);
    const at::Tensor codes = unpacked_rows(packed.view({static_cast<int64_t>(grid.rows), -1}),
                                           static_cast<int64_t>(grid.row_size), bits_);
    if (!codes.defined()) return {};
    const at::Tensor values = dequantised_groups(
        {rows_of_bytes(payload.narrow(0, 0, ranges).view({-1, static_cast<int64_t>(kRangeSize)}), at::kFloat),
         grid.as_groups(codes.contiguous(), Grid::Filler::last_element)},
        bits_);
    if (!values.defined()) return {};
    return scope_.from_order(grid.from_groups(values), at::empty(meta.shape, values.options()));
  }

  at::Tensor reference(const at::Tensor& x) const override {
    const Grid grid = scope_.grid(meta_of(x));
    const auto size = static_cast<int64_t>(grid.group_size);
    const at::Tensor rows = scope_.in_order(x).view({static_cast<int64_t>(grid.rows), -1});
    const int64_t whole = rows.size(1) / size * size;
    const at::Tensor groups = rows.narrow(1, 0, whole).reshape({-1, size});
    const at::Tensor head = reference_groups(groups, bits_, stochastic_).view({rows.size(0), whole});
    if (whole == rows.size(1)) return scope_.from_order(head, x);
    const at::Tensor tail = rows.narrow(1, whole, rows.size(1) - whole);
    return scope_.from_order(at::cat({head, reference_groups(tail, bits_, stochastic_)}, 1), x);
  }

  bool is_row_wise() const override { return scope_.is_row_wise(); }

  const FusedFeedback* fused_feedback(const MessageMeta& meta, const MessageContext& context) const override {
    const bool has_kernels = !context.device.is_cpu() && kernels_of(context.device) != nullptr;
    return has_kernels && scope_.keeps_order() && goes_there(meta, context) ? this : nullptr;
  }

 protected:
  const Codec& codec() const override { return *this; }

  at::Tensor encode_by(const DeviceKernels& kernels, const at::Tensor& x, const KernelFeedback& feedback,
                       const MessageContext& context) const override {
    return kernels.write_groups(x, form(meta_of(x), context), feedback);
  }

  bool add_by(const DeviceKernels& kernels, const at::Tensor& message, at::Tensor& sum) const override {
    return kernels.add_groups(message, form(meta_of(sum), {}), sum);
  }

  PayloadSize do_payload_size(const MessageMeta& meta) const override {
    const Grid grid = scope_.grid(meta);
    return {grid.groups() * kRangeSize + grid.code_bytes(bits_), true};
  }

  void do_encode(std::span<const float> x, const MessageMeta& meta, const MessageContext& context,
                 ByteWriter& out) const override {
    const Grid grid = scope_.grid(meta);
    const kernels::Dither dither = make_dither(context, meta);
    const auto ranges = out.claim(grid.groups() * kRangeSize);
    const auto codes = out.claim(grid.code_bytes(bits_));
    scope_.with_ordered(x, meta, [&](std::span<const float> ordered) {
      if (grid.groups() == 1) return encode_shared(ordered, dither, ranges, codes);
      in_runs(grid, [&](size_t first, size_t last) {
        encode_run(ordered, grid, first, last, dither, ranges, codes);
      });
    });
  }

  void do_decode(ByteReader& in, const MessageMeta& meta, const MessageContext& /*context*/,
                 std::span<float> out) const override {
    const Grid grid = scope_.grid(meta);
    const auto ranges = in.take(grid.groups() * kRangeSize);
    const auto codes = in.take(grid.code_bytes(bits_));
    scope_.fill_ordered(out, meta, [&](std::span<float> ordered) {
      in_runs(grid, [&](size_t first, size_t last) {
        for (size_t i = first; i < last; ++i) {
          const Grid::Group group = grid.group(i);
          ByteReader reader(ranges.subspan(i * kRangeSize, kRangeSize));
          const auto range = read_range(reader);
          const auto packed = grid.codes(codes, group, bits_);
          check_codes(packed, group.size, range, bits_);
          const auto decode = [&](size_t begin, size_t count) {
            kernels::dequantise(packed.subspan(begin / 8 * bits_, kernels::packed_size(count, bits_)), range,
                                bits_, ordered.subspan(group.begin + begin, count));
          };
          grid.groups() == 1 ? in_parts(group.size, decode) : decode(0, group.size);
        }
      });
    });
  }

 private:
  GroupForm form(const MessageMeta& meta, const MessageContext& context) const {
    return {.levels = GroupForm::Levels::range,
            .grid = scope_.grid(meta),
            .bits = bits_,
            .is_stochastic = stochastic_,
            .dither = make_dither(context, meta)};
  }

  QuantisedGroups quantised(const at::Tensor& x, const Grid& grid, const MessageContext& context) const {
    std::optional<at::Tensor> dither;
    if (stochastic_) dither = grid.as_groups(dither_of(context, meta_of(x), x), Grid::Filler::last_element);
    return quantised_groups(grid.as_groups(scope_.in_order(x), Grid::Filler::last_element), bits_, dither);
  }

  /// Encodes the groups from `first` to `last`, which is not one of them.
  void encode_run(std::span<const float> x, const Grid& grid, size_t first, size_t last,
                  const kernels::Dither& dither, std::span<std::byte> ranges,
                  std::span<std::byte> codes) const {
    const auto part = [&](const Grid::Group& group) { return x.subspan(group.begin, group.size); };
    Grid::Group group = grid.group(first);
    auto range = kernels::range_of(part(group));
    for (size_t i = first; i < last; ++i) {
      ByteWriter writer(ranges.subspan(i * kRangeSize, kRangeSize));
      write_range(sendable(range), writer);
      const bool has_next = i + 1 < last;
      const Grid::Group next = has_next ? grid.group(i + 1) : Grid::Group{};
      range = quantise(part(group), range, advanced(dither, group.begin), grid.codes(codes, group, bits_),
                       part(next));
      group = next;
    }
  }

  /// Encodes the only group: threads share its elements rather than groups.
  void encode_shared(std::span<const float> x, kernels::Dither dither, std::span<std::byte> range_bytes,
                     std::span<std::byte> codes) const {
    const auto range = range_of_all(x);
    ByteWriter writer(range_bytes);
    write_range(range, writer);
    in_parts(x.size(), [&](size_t begin, size_t count) {
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
  const auto choice = [&](const char* option, const char* first, const char* second) {
    const std::string value = spec.option(option, first);
    if (value != first && value != second) spec.reject(option, value, fmt::format("{} or {}", first, second));
    return value == second;
  };
  const std::string& argument = spec.argument("the bits a value");
  const auto bits = static_cast<unsigned>(spec.integer(argument, "the bits of a quantised value", 1, 8));
  const Scope scope = Scope::from(spec, "tensor");
  const bool is_stochastic = choice("rounding", "nearest", "stochastic");
  const bool is_symmetric = choice("levels", "range", "symmetric");
  const bool is_rotated = choice("rotate", "none", "hadamard");
  const bool has_spikes = choice("spikes", "0", "1");
  spec.finish();
  if (is_symmetric && bits < 2) spec.reject("the bits a value", argument, "2 to 8 with levels=symmetric");
  std::unique_ptr<Codec> codec = is_symmetric ? make_symmetric_quant(identity, scope, bits, is_stochastic)
                                              : std::make_unique<Quant>(identity, bits, scope, is_stochastic);
  if (is_rotated) codec = make_rotated(identity, std::move(codec));
  if (has_spikes) codec = make_spiked(identity, scope, std::move(codec));
  return codec;
}

}  // namespace strait
