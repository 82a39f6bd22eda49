#include <ATen/core/ivalue.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "strait/base/random.h"
#include "strait/codecs/composed.h"
#include "strait/codecs/quant_group.h"
#include "strait/codecs/selecting_codec.h"
#include "strait/kernels/copy.h"
#include "strait/kernels/select.h"

namespace strait {
namespace {

/// The k = ceil(p * n) elements with the least draws of each sample, or of the tensor; the others become 0
/// (docs/operators.md, "random"). Both ends draw, so that values alone are sent; a gradient's draws are those
/// of its activations. Source: sparsified SGD, Stich et al. 2018, arXiv 1809.07599.
class Random : public SelectingCodec {
 public:
  using SelectingCodec::SelectingCodec;

  SparseShape shape_of(const MessageMeta& meta) const override {
    const bool per_sample = selection().per_sample;
    const size_t n = per_sample ? meta.row_size() : meta.elements();
    check_group_size("random", n);
    const size_t width = meta.shape.size() > 1 ? static_cast<size_t>(meta.shape.back()) : n;
    return {per_sample ? meta.rows() : 1, n, selection().share.of(n), std::max<size_t>(1, width)};
  }

 protected:
  size_t head_size(const MessageMeta& /*meta*/) const override { return 0; }

  void choose(std::span<const float> x, const Group& group, std::span<std::byte> /*head*/,
              std::span<uint64_t> mask) const override {
    if (!kernels::all_finite(x)) throw NumericError("a value is not finite");
    mark(group, mask);
  }

  void read_choice(std::span<const std::byte> /*head*/, const Group& group,
                   std::span<uint64_t> mask) const override {
    mark(group, mask);
  }

  at::Tensor kept_of(const at::Tensor& groups, const MessageMeta& meta,
                     const MessageContext& context) const override {
    if (!are_finite(groups)) throw NumericError("a value is not finite");
    return drawn(groups, meta, context);
  }

  at::Tensor heads_of(const at::Tensor& kept, const MessageMeta& /*meta*/) const override {
    return at::empty({kept.size(0), 0}, kept.options().dtype(at::kByte));
  }

  at::Tensor kept_by(const at::Tensor& heads, const MessageMeta& meta,
                     const MessageContext& context) const override {
    return std::get<0>(drawn(heads, meta, context).sort(1));
  }

 private:
  /// The draws of a message, whose direction and micro-batch they do not depend on.
  static kernels::Dither draws_for(const MessageMeta& meta, const MessageContext& context) {
    const uint64_t key = make_key(context.seed, context.boundary, context.step);
    return {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32), context.first_row * meta.row_size()};
  }

  /// The positions that the groups of a message keep, int64 [G, k] in any order, on the device of `like`.
  at::Tensor drawn(const at::Tensor& like, const MessageMeta& meta, const MessageContext& context) const {
    const SparseShape shape = shape_of(meta);
    const auto n = static_cast<int64_t>(shape.n);
    const at::Tensor draws = draws_of(draws_for(meta, context), meta.elements(), like);
    // Keys are distinct: the draw first, then the position, so any order of comparison agrees.
    const at::Tensor position = at::arange(n, draws.options());
    const at::Tensor keys =
        draws.bitwise_right_shift(1).view({-1, n}).bitwise_left_shift(32).bitwise_or(position);
    return std::get<1>(keys.topk(static_cast<int64_t>(shape.k), 1, /*largest=*/false, /*sorted=*/false));
  }

  static void mark(const Group& group, std::span<uint64_t> mask) {
    thread_local kernels::SelectScratch scratch;
    kernels::Dither draws = draws_for(group.meta, group.context);
    draws.first_index += group.number * group.shape.n;
    kernels::select_least_draws(draws, group.shape.n, group.shape.k, scratch, mask);
  }
};

}  // namespace

std::unique_ptr<Codec> make_random(CodecIdentity identity, OperatorSpec spec) {
  const auto selection = selection_from(identity, spec, "elements", "sample");
  auto values = kept_values_from(spec);
  const std::string scale = spec.option("scale", "none");
  if (scale != "none" && scale != "unbiased") spec.reject("scale", scale, "none or unbiased");
  spec.finish();
  ValueLists lists(std::move(values), scale == "none" ? ValueScale::none : ValueScale::unbiased);
  return std::make_unique<Random>(std::move(identity), selection, std::move(lists));
}

}  // namespace strait
