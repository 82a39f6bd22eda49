#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <atomic>

#include "strait/base/raise_to.h"
#include "strait/base/random.h"
#include "strait/codecs/composed.h"
#include "strait/codecs/finite.h"
#include "strait/codecs/quant_options.h"
#include "strait/kernels/hadamard.h"

namespace strait {
namespace {

constexpr auto kBlock = static_cast<int64_t>(kernels::kRotated);

/// Which elements of a block change their sign, one bit each; the same for all blocks of a batch.
uint64_t signs_of(const MessageContext& context) {
  constexpr uint64_t kRotation = 1;  // other numbers than those of stochastic rounding
  return CounterRandom(make_key(context.seed, context.boundary, static_cast<uint64_t>(context.direction),
                                context.step, kRotation))
      .word(0);
}

/// -1 where a bit of `signs` is set, else 1.
at::Tensor sign_tensor(uint64_t signs, const at::Tensor& like) {
  at::Tensor factors = at::full({kBlock}, 1.0F, at::kFloat);
  for (size_t i = 0; i < kernels::kRotated; ++i) {
    if ((signs >> i & 1) != 0) factors.data_ptr<float>()[i] = -1;
  }
  return factors.to(like.device());
}

/// Blocks of 64 elements of a row, rotated before the inner codec and back behind it (docs/operators.md,
/// "quant").
class Rotated : public Codec {
 public:
  Rotated(CodecIdentity identity, std::shared_ptr<const Codec> inner)
      : Codec(std::move(identity)), inner_(std::move(inner)) {}

  at::Tensor reconstruct(const at::Tensor& x, const MessageContext& context) const override {
    if (x.numel() == 0) return x.clone(at::MemoryFormat::Contiguous);
    return rotated_back(inner_->reconstruct(rotated(x, context), context), context);
  }

  at::Tensor device_encode(const at::Tensor& x, const MessageContext& context) const override {
    return inner_->device_encode(rotated(x, context), context);
  }

  at::Tensor device_decode(const at::Tensor& payload, const MessageMeta& meta,
                           const MessageContext& context) const override {
    const at::Tensor seen = inner_->device_decode(payload, meta, context);
    if (!seen.defined()) return {};
    const at::Tensor values = rotated_back(seen, context);
    return are_finite(values) ? values : at::Tensor();
  }

  bool is_row_wise() const override { return inner_->is_row_wise(); }

 protected:
  PayloadSize do_payload_size(const MessageMeta& meta) const override { return inner_->payload_size(meta); }

  void do_encode(std::span<const float> x, const MessageMeta& meta, const MessageContext& context,
                 ByteWriter& out) const override {
    const at::Tensor rotated = at::empty(meta.shape, at::kFloat);
    const uint64_t signs = signs_of(context);
    std::atomic<uint32_t> largest = 0;
    in_rows(meta, [&](size_t begin, size_t count) {
      raise_to(largest,
               kernels::rotate(x.subspan(begin, count), signs, {rotated.data_ptr<float>() + begin, count}));
    });
    check_largest(largest, kOverflow, kWhat);
    inner_->write(rotated, context, out);
  }

  void do_decode(ByteReader& in, const MessageMeta& meta, const MessageContext& context,
                 std::span<float> out) const override {
    inner_->read_elements(in, meta, context, out);
    const uint64_t signs = signs_of(context);
    std::atomic<bool> is_finite = true;
    in_rows(meta, [&](size_t begin, size_t count) {
      const auto row = out.subspan(begin, count);
      if (!kernels::rotate_back(row, signs, row)) is_finite = false;
    });
    if (!is_finite) throw WireError("what a rotation gives is not finite");
  }

 private:
  /// The message with each whole block of 64 elements of a row turned into what `rotate` gives.
  template <class Rotate>
  static at::Tensor in_blocks(const at::Tensor& x, const Rotate& rotate) {
    const at::Tensor rows = x.contiguous().view({x.dim() == 0 ? 1 : x.size(0), -1});
    const int64_t whole = rows.size(1) / kBlock * kBlock;
    const at::Tensor blocks = rotate(rows.narrow(1, 0, whole).reshape({-1, kBlock}));
    return at::cat({blocks.view({rows.size(0), whole}), rows.narrow(1, whole, rows.size(1) - whole)}, 1)
        .view(x.sizes());
  }

  static at::Tensor rotated(const at::Tensor& x, const MessageContext& context) {
    check_largest(largest_magnitude(x), kOverflow, kWhat);
    const at::Tensor signs = sign_tensor(signs_of(context), x);
    return in_blocks(x, [&](const at::Tensor& blocks) { return rotated_blocks(blocks.mul(signs)); });
  }

  static at::Tensor rotated_back(const at::Tensor& x, const MessageContext& context) {
    const at::Tensor signs = sign_tensor(signs_of(context), x);
    return in_blocks(x, [&](const at::Tensor& blocks) { return rotated_blocks(blocks).mul(signs); });
  }

  // Two rotations make an element at most 64 times as large, and rounding a little more.
  static constexpr uint32_t kOverflow = (127U + 121U) << 23;  // 2^121
  static constexpr const char* kWhat = "a rotation, 2^121";

  /// Calls work(begin, count) for every row; threads share them.
  template <class Work>
  static void in_rows(const MessageMeta& meta, const Work& work) {
    const size_t row = meta.row_size();
    const auto grain = std::max<int64_t>(1, kGroupGrain / static_cast<int64_t>(row));
    at::parallel_for(0, static_cast<int64_t>(meta.rows()), grain, [&](int64_t first, int64_t last) {
      for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i) work(i * row, row);
    });
  }

  std::shared_ptr<const Codec> inner_;
};

}  // namespace

std::unique_ptr<Codec> make_rotated(CodecIdentity identity, std::shared_ptr<const Codec> inner) {
  return std::make_unique<Rotated>(std::move(identity), std::move(inner));
}

}  // namespace strait
