#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "strait/codecs/codec.h"
#include "strait/codecs/factors.h"
#include "strait/codecs/quant_group.h"
#include "strait/kernels/copy.h"
#include "strait/kernels/lowrank.h"

namespace strait {
namespace {

/// Space of a thread's own, which stays.
struct LowRankSpace {
  std::vector<float> left;   ///< P: rank vectors, an element for each row
  std::vector<float> right;  ///< Q: rank vectors, an element for each column
  std::vector<float> last;   ///< a last row that has too few elements

  static LowRankSpace& own() {
    thread_local LowRankSpace space;
    return space;
  }
};

/// The exponent of the largest magnitude of finite elements; nothing where all are 0.
std::optional<int> exponent_of(std::span<const float> x) {
  const float largest = largest_of(x);
  if (largest == 0) return std::nullopt;
  return std::ilogb(largest);
}

/// Multiplies with 2^exponent, which itself may be past float32.
void scale_by_power(std::span<float> x, int exponent) {
  const float first = std::ldexp(1.0F, exponent / 2);
  const float second = std::ldexp(1.0F, exponent - exponent / 2);
  for (float& value : x) value = value * first * second;
}

/// A matrix of the given rank near the message (docs/operators.md, "lowrank"): one step of a power iteration.
/// Source: PowerSGD, Vogels et al. 2019, arXiv 1905.13727.
class LowRank : public Codec, public WarmStart {
 public:
  LowRank(CodecIdentity identity, size_t rank, MatrixLayout layout, bool starts_warm)
      : Codec(std::move(identity)), rank_(rank), layout_(layout), starts_warm_(starts_warm) {}

  const WarmStart* warm_start() const override { return starts_warm_ ? this : nullptr; }

  void write_from(at::Tensor& start, const at::Tensor& x, const MessageContext& context,
                  ByteWriter& out) const override {
    if (x.numel() == 0) return;
    const MatrixShape shape = shape_of(meta_of(x));
    const at::Tensor dense = x.to(at::kCPU).contiguous();
    const std::vector<int64_t> size = {static_cast<int64_t>(rank_), static_cast<int64_t>(shape.columns)};
    const bool fits = start.defined() && start.sizes() == at::IntArrayRef(size);
    write_factors({dense.data_ptr<float>(), shape.elements}, shape, fits ? start.data_ptr<float>() : nullptr,
                  context, out);
    if (!fits) start = at::empty(size, at::kFloat);
    std::memcpy(start.data_ptr<float>(), LowRankSpace::own().right.data(), start.nbytes());
  }

 protected:
  PayloadSize do_payload_size(const MessageMeta& meta) const override {
    const MatrixShape shape = shape_of(meta);
    return {shape.factor_bytes(rank_), true};
  }

  void do_encode(std::span<const float> x, const MessageMeta& meta, const MessageContext& context,
                 ByteWriter& out) const override {
    write_factors(x, shape_of(meta), nullptr, context, out);
  }

  void do_decode(ByteReader& in, const MessageMeta& meta, const MessageContext& /*context*/,
                 std::span<float> out) const override {
    const MatrixShape shape = shape_of(meta);
    LowRankSpace& space = LowRankSpace::own();
    space.left.resize(rank_ * shape.rows);
    space.right.resize(rank_ * shape.columns);
    for (auto* factor : {&space.left, &space.right}) {
      if (!kernels::copy_finite(in.take(factor->size() * sizeof(float)), *factor)) {
        throw WireError("a float32 value is not finite");
      }
    }
    if (!multiply_out(space.left, space.right, shape, out)) {
      throw WireError("the product of the factors is past float32");
    }
  }

 private:
  /// The message's matrix. Throws InputError where the factors take as many bytes as the message or more.
  MatrixShape shape_of(const MessageMeta& meta) const {
    const MatrixShape shape = matrix_of(meta, layout_);
    check_that_it_saves(spec(), meta, shape, shape.factor_bytes(rank_));
    return shape;
  }

  /// Makes space.right the vectors to begin with: those of `start`, or where it is null or a vector is zero,
  /// drawn ones; each with its largest magnitude in [1, 2) or, drawn, below 1, and all of them times a power of
  /// two with which the message's largest magnitude is near 1.
  void start_vectors(std::span<const float> x, const MatrixShape& shape, const float* start,
                     const MessageContext& context, std::vector<float>& right) const {
    constexpr int kMost =
        100;  // so that factors, and their products with messages, stay far from the ends of float32
    const int scale = -std::clamp(exponent_of(x).value_or(0), -kMost, kMost);
    right.resize(rank_ * shape.columns);
    const kernels::Dither draws = make_dither(context, {});
    for (size_t j = 0; j < rank_; ++j) {
      const auto vector = std::span(right).subspan(j * shape.columns, shape.columns);
      std::optional<int> exponent;
      if (start != nullptr) {
        std::copy_n(start + j * shape.columns, shape.columns, vector.begin());
        exponent = exponent_of(vector);
      }
      for (size_t i = 0; i < shape.columns && !exponent; ++i) {
        vector[i] = 2 * kernels::dither_at(draws, j * shape.columns + i) - 1;
      }
      scale_by_power(vector, scale - exponent.value_or(0));
    }
  }

  /// Calls work(rows, first) for the matrix' rows: the whole ones, and a last one that is filled up with zeros.
  template <class Work>
  static void for_rows(std::span<const float> x, const MatrixShape& shape, const Work& work) {
    const size_t whole = shape.whole_rows() * shape.columns;
    work(kernels::MatrixRows{x.first(whole), shape.columns}, 0);
    if (whole == x.size()) return;
    std::vector<float>& last = LowRankSpace::own().last;
    last.assign(shape.columns, 0.0F);
    std::ranges::copy(x.subspan(whole), last.begin());
    work(kernels::MatrixRows{last, shape.columns}, shape.whole_rows());
  }

  /// Leaves the vectors of Q in the thread's space.
  void write_factors(std::span<const float> x, const MatrixShape& shape, const float* start,
                     const MessageContext& context, ByteWriter& out) const {
    if (!kernels::all_finite(x)) throw NumericError("a value is not finite");
    LowRankSpace& space = LowRankSpace::own();
    start_vectors(x, shape, start, context, space.right);
    space.left.resize(rank_ * shape.rows);
    for_rows(x, shape, [&](const kernels::MatrixRows& m, size_t first) {
      in_shares(m.rows(), shape.columns, [&](size_t from, size_t to) {
        const auto part = m.elements.subspan(from * shape.columns, (to - from) * shape.columns);
        kernels::multiply({part, shape.columns}, space.right, first + from, shape.rows, space.left);
      });
    });
    kernels::orthonormalise(shape.rows, space.left);
    std::ranges::fill(space.right, 0.0F);
    for_rows(x, shape, [&](const kernels::MatrixRows& m, size_t first) {
      in_shares(shape.columns, m.rows(), [&](size_t from, size_t to) {
        kernels::add_transposed(m, space.left, first, shape.rows, from, to, space.right);
      });
    });
    check_products(space.left, space.right, shape);
    for (const auto* factor : {&space.left, &space.right}) {
      kernels::copy_finite(*factor, out.claim(factor->size() * sizeof(float)));
    }
  }

  size_t rank_;
  MatrixLayout layout_;
  bool starts_warm_;
};

}  // namespace

std::unique_ptr<Codec> make_lowrank(CodecIdentity identity, OperatorSpec spec) {
  constexpr int64_t kMostRank = 1024;
  const int64_t rank = spec.integer(spec.argument("the rank"), "the rank of a matrix", 1, kMostRank);
  const MatrixLayout layout = matrix_layout_from(spec);
  const std::string warm = spec.option("warm", "no");
  if (warm != "no" && warm != "yes") spec.reject("warm", warm, "no or yes");
  spec.finish();
  return std::make_unique<LowRank>(std::move(identity), static_cast<size_t>(rank), layout, warm == "yes");
}

}  // namespace strait
