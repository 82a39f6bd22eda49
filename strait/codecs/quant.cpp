#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "strait/codecs/codec.h"
#include "strait/codecs/composed.h"
#include "strait/codecs/fused_feedback.h"
#include "strait/codecs/group_codec.h"
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
class Quant : public TensorGroupCodec, public FusedByKernels {
 public:
  Quant(CodecIdentity identity, unsigned bits, Scope scope, bool stochastic, RangeType ranges)
      : TensorGroupCodec(std::move(identity), scope, range_size(ranges), bits, Grid::Filler::last_element),
        stochastic_(stochastic),
        ranges_(ranges) {}

  at::Tensor reference(const at::Tensor& x) const override {
    const Grid grid = scope().grid(meta_of(x));
    const auto size = static_cast<int64_t>(grid.group_size);
    const at::Tensor rows = scope().in_order(x).view({static_cast<int64_t>(grid.rows), -1});
    const int64_t whole = rows.size(1) / size * size;
    const at::Tensor groups = rows.narrow(1, 0, whole).reshape({-1, size});
    const at::Tensor head = reference_groups(groups, bits(), stochastic_, ranges_).view({rows.size(0), whole});
    if (whole == rows.size(1)) return scope().from_order(head, x);
    const at::Tensor tail = rows.narrow(1, whole, rows.size(1) - whole);
    return scope().from_order(at::cat({head, reference_groups(tail, bits(), stochastic_, ranges_)}, 1), x);
  }

  const FusedFeedback* fused_feedback(const MessageMeta& meta, const MessageContext& context) const override {
    const bool has_kernels = !context.device.is_cpu() && kernels_of(context.device) != nullptr;
    return has_kernels && scope().keeps_order() && goes_there(meta, context) ? this : nullptr;
  }

 protected:
  const Codec& codec() const override { return *this; }

  at::Tensor encode_by(const DeviceKernels& kernels, const at::Tensor& x, const KernelFeedback& feedback,
                       const MessageContext& context) const override {
    return kernels.write_groups(x, *kernel_form_of(meta_of(x), context), feedback);
  }

  bool add_by(const DeviceKernels& kernels, const at::Tensor& message, at::Tensor& sum) const override {
    return kernels.add_groups(message, *kernel_form_of(meta_of(sum), {}), sum);
  }

  std::optional<GroupForm> kernel_form() const override {
    return GroupForm{.levels = GroupForm::Levels::range, .is_stochastic = stochastic_, .ranges = ranges_};
  }

  CodedGroups code_groups(const TensorGroups& groups) const override {
    std::optional<at::Tensor> dither;
    if (stochastic_) dither = groups.dither();
    const QuantisedGroups quantised = quantised_groups(groups.values, bits(), dither, ranges_);
    return {bytes_of_rows(quantised.ranges.to(type_of_ends())), quantised.codes};
  }

  at::Tensor values_of(const CodedGroups& groups) const override {
    return dequantised_groups({rows_of_bytes(groups.headers, type_of_ends()).to(at::kFloat), groups.codes},
                              bits());
  }

  void do_encode(std::span<const float> x, const MessageMeta& meta, const MessageContext& context,
                 ByteWriter& out) const override {
    const Grid grid = scope().grid(meta);
    const kernels::Dither dither = make_dither(context, meta);
    const auto ranges = out.claim(grid.groups() * header_size());
    const auto codes = out.claim(grid.code_bytes(bits()));
    scope().with_ordered(x, meta, [&](std::span<const float> ordered) {
      if (grid.groups() == 1) return encode_shared(ordered, dither, ranges, codes);
      in_runs(grid, [&](size_t first, size_t last) {
        ranges_ == RangeType::fp32
            ? encode_run<RangeType::fp32>(ordered, grid, first, last, dither, ranges, codes)
            : encode_run<RangeType::bf16>(ordered, grid, first, last, dither, ranges, codes);
      });
    });
  }

  void do_decode(ByteReader& in, const MessageMeta& meta, const MessageContext& /*context*/,
                 std::span<float> out) const override {
    const Grid grid = scope().grid(meta);
    const auto ranges = in.take(grid.groups() * header_size());
    const auto codes = in.take(grid.code_bytes(bits()));
    scope().fill_ordered(out, meta, [&](std::span<float> ordered) {
      in_runs(grid, [&](size_t first, size_t last) {
        for (size_t i = first; i < last; ++i) {
          const Grid::Group group = grid.group(i);
          ByteReader reader(ranges.subspan(i * header_size(), header_size()));
          const auto range = read_range(reader, ranges_);
          const auto packed = grid.codes(codes, group, bits());
          check_codes(packed, group.size, range, bits());
          const auto decode = [&](size_t begin, size_t count) {
            kernels::dequantise(packed.subspan(begin / 8 * bits(), kernels::packed_size(count, bits())), range,
                                bits(), ordered.subspan(group.begin + begin, count));
          };
          grid.groups() == 1 ? in_parts(group.size, decode) : decode(0, group.size);
        }
      });
    });
  }

 private:
  /// Encodes the groups from `first` to `last`, which is not one of them. Small groups would feel a type of
  /// ranges that is not known at compile time.
  template <RangeType type>
  void encode_run(std::span<const float> x, const Grid& grid, size_t first, size_t last,
                  const kernels::Dither& dither, std::span<std::byte> ranges,
                  std::span<std::byte> codes) const {
    const auto part = [&](const Grid::Group& group) { return x.subspan(group.begin, group.size); };
    Grid::Group group = grid.group(first);
    auto range = kernels::range_of(part(group));
    constexpr size_t kSize = range_size(type);
    ByteWriter writer(ranges.subspan(first * kSize, (last - first) * kSize));
    for (size_t i = first; i < last; ++i) {
      range = as_sent(range, type);
      write_range(range, writer, type);
      const bool has_next = i + 1 < last;
      const Grid::Group next = has_next ? grid.group(i + 1) : Grid::Group{};
      range = quantise(part(group), range, advanced(dither, group.begin), grid.codes(codes, group, bits()),
                       part(next));
      group = next;
    }
  }

  /// Encodes the only group: threads share its elements rather than groups.
  void encode_shared(std::span<const float> x, kernels::Dither dither, std::span<std::byte> range_bytes,
                     std::span<std::byte> codes) const {
    const auto range = as_sent(range_of_all(x), ranges_);
    ByteWriter writer(range_bytes);
    write_range(range, writer, ranges_);
    in_parts(x.size(), [&](size_t begin, size_t count) {
      quantise(x.subspan(begin, count), range, advanced(dither, begin),
               codes.subspan(begin / 8 * bits(), kernels::packed_size(count, bits())), {});
    });
  }

  kernels::Range quantise(std::span<const float> x, kernels::Range range, kernels::Dither dither,
                          std::span<std::byte> out, std::span<const float> next) const {
    if (stochastic_) return kernels::quantise_stochastic(x, range, bits(), dither, out, next);
    return kernels::quantise(x, range, bits(), out, next);
  }

  at::ScalarType type_of_ends() const { return ranges_ == RangeType::fp32 ? at::kFloat : at::kBFloat16; }

  bool stochastic_;
  RangeType ranges_;
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
  const RangeType ranges = choice("ranges", "fp32", "bf16") ? RangeType::bf16 : RangeType::fp32;
  spec.finish();
  if (is_symmetric && bits < 2) spec.reject("the bits a value", argument, "2 to 8 with levels=symmetric");
  if (is_symmetric && ranges != RangeType::fp32)
    spec.reject("ranges", "bf16", "fp32 with levels=symmetric, which has none");
  std::unique_ptr<Codec> codec = is_symmetric
                                     ? make_symmetric_quant(identity, scope, bits, is_stochastic)
                                     : std::make_unique<Quant>(identity, bits, scope, is_stochastic, ranges);
  if (is_rotated) codec = make_rotated(identity, std::move(codec));
  if (has_spikes) codec = make_spiked(identity, scope, std::move(codec));
  return codec;
}

}  // namespace strait
