#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "strait/base/text.h"
#include "strait/codecs/codec.h"
#include "strait/codecs/quant_group.h"
#include "strait/kernels/copy.h"
#include "strait/kernels/lowrank.h"

namespace strait {
namespace {

/// A message as a matrix, row-major, of which the last row may have too few elements; what is missing is 0.
struct MatrixShape {
  size_t elements = 0;  ///< of the message
  size_t rows = 0;
  size_t columns = 0;

  size_t whole_rows() const { return elements / columns; }
};

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

/// The largest magnitude; infinity where an element is not finite.
float largest_of(std::span<const float> x) {
  const kernels::Range range = kernels::range_of(x);
  const bool is_finite = std::isfinite(range.lo) && std::isfinite(range.hi);
  return is_finite ? std::max(-range.lo, range.hi) : std::numeric_limits<float>::infinity();
}

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

/// Calls work(begin, end) for parts of `count` rows or columns of `size` elements each, which threads share.
template <class Work>
void in_shares(size_t count, size_t size, const Work& work) {
  constexpr size_t kGrain = 1 << 16;  // elements that a thread handles at least
  const auto grain = static_cast<int64_t>(std::max<size_t>(16, kGrain / std::max<size_t>(1, size)));
  at::parallel_for(0, static_cast<int64_t>(count), grain, [&](int64_t begin, int64_t end) {
    work(static_cast<size_t>(begin), static_cast<size_t>(end));
  });
}

/// A matrix of the given rank near the message (docs/operators.md, "lowrank"): one step of a power iteration.
/// Source: PowerSGD, Vogels et al. 2019, arXiv 1905.13727.
class LowRank : public Codec, public WarmStart {
 public:
  enum class Layout { dimensions, square };

  LowRank(CodecIdentity identity, size_t rank, Layout layout, bool starts_warm)
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
    return {bytes_of(shape), true};
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
    in_shares(shape.whole_rows(), shape.columns, [&](size_t begin, size_t end) {
      kernels::multiply_factors(space.left, begin, shape.rows, space.right, shape.columns,
                                out.subspan(begin * shape.columns, (end - begin) * shape.columns));
    });
    if (const auto rest = out.subspan(shape.whole_rows() * shape.columns); !rest.empty()) {
      space.last.resize(shape.columns);
      kernels::multiply_factors(space.left, shape.whole_rows(), shape.rows, space.right, shape.columns,
                                space.last);
      std::copy_n(space.last.begin(), rest.size(), rest.begin());
    }
    if (!kernels::all_finite(out)) throw WireError("the product of the factors is past float32");
  }

 private:
  size_t bytes_of(const MatrixShape& shape) const {
    return rank_ * (shape.rows + shape.columns) * sizeof(float);
  }

  /// The message's matrix. Throws InputError where the factors take as many bytes as the message or more.
  MatrixShape shape_of(const MessageMeta& meta) const {
    MatrixShape shape{meta.elements(), 0, 0};
    if (layout_ == Layout::square) {
      shape.columns = static_cast<size_t>(std::ceil(std::sqrt(static_cast<double>(shape.elements))));
    } else if (meta.shape.size() == 4) {
      shape.columns = static_cast<size_t>(meta.shape[2] * meta.shape[3]);
    } else {
      shape.columns = meta.shape.empty() ? 1 : static_cast<size_t>(meta.shape.back());
    }
    shape.rows = (shape.elements + shape.columns - 1) / shape.columns;
    if (const size_t raw = shape.elements * sizeof(float); bytes_of(shape) >= raw) {
      throw InputError(
          "codec {} takes a message of shape {} as a matrix of {} rows and {} columns, of which it would send "
          "{} "
          "bytes, not fewer than the message's {}",
          spec(), shape_text(meta.shape), shape.rows, shape.columns, bytes_of(shape), raw);
    }
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
    check_products(space, shape);
    for (const auto* factor : {&space.left, &space.right}) {
      kernels::copy_finite(*factor, out.claim(factor->size() * sizeof(float)));
    }
  }

  /// Throws NumericError where what the receiver computes could be past float32.
  void check_products(const LowRankSpace& space, const MatrixShape& shape) const {
    const auto largest = [](const std::vector<float>& factor, size_t j, size_t length) {
      return static_cast<double>(largest_of(std::span(factor).subspan(j * length, length)));
    };
    double sum = 0;
    for (size_t j = 0; j < rank_; ++j) {
      sum += largest(space.left, j, shape.rows) * largest(space.right, j, shape.columns);
    }
    if (!(sum < std::numeric_limits<float>::max() / 2)) {
      throw NumericError("the factors of the message are past float32");
    }
  }

  size_t rank_;
  Layout layout_;
  bool starts_warm_;
};

}  // namespace

std::unique_ptr<Codec> make_lowrank(CodecIdentity identity, OperatorSpec spec) {
  constexpr int64_t kMostRank = 1024;
  const int64_t rank = parse_integer(spec.argument("the rank"), "the rank of a matrix", 1, kMostRank);
  const std::string matrix = spec.option("matrix", "dimensions");
  if (matrix != "dimensions" && matrix != "square") spec.reject("matrix", matrix, "dimensions or square");
  const std::string warm = spec.option("warm", "no");
  if (warm != "no" && warm != "yes") spec.reject("warm", warm, "no or yes");
  spec.finish();
  const auto layout = matrix == "square" ? LowRank::Layout::square : LowRank::Layout::dimensions;
  return std::make_unique<LowRank>(std::move(identity), static_cast<size_t>(rank), layout, warm == "yes");
}

}  // namespace strait
