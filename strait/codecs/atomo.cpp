#include <ATen/core/ivalue.h>
#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/zeros.h>

#include <limits>
#include <vector>

#include "strait/codecs/codec.h"
#include "strait/codecs/factors.h"
#include "strait/codecs/groups.h"
#include "strait/codecs/quant_group.h"
#include "strait/kernels/copy.h"

namespace strait {
namespace {

constexpr auto kAllElements = std::numeric_limits<uint32_t>::max();  // in the place of the number of triples

/// With which probabilities triples are kept: min(1, c sigma), with the sum `budget`, or all of those that are
/// not 0 where these are fewer. `sigma` descends.
std::vector<double> probabilities_of(std::span<const double> sigma, size_t budget) {
  std::vector<double> rest(sigma.size() + 1);  // the sums from each on
  for (size_t i = sigma.size(); i > 0; --i) rest[i - 1] = rest[i] + sigma[i - 1];
  std::vector<double> p(sigma.size());
  for (size_t i = 0; i < sigma.size() && rest[i] > 0; ++i) {
    const auto left = budget > i ? static_cast<double>(budget - i) : 0.0;
    if (left * sigma[i] < rest[i]) {
      for (size_t j = i; j < sigma.size(); ++j) p[j] = left * sigma[j] / rest[i];
      break;
    }
    p[i] = 1;
  }
  return p;
}

/// The triples that are drawn: of each, sigma / p times the left singular vector, and the right one.
struct KeptTriples {
  std::vector<float> left;
  std::vector<float> right;

  static KeptTriples& own() {
    thread_local KeptTriples triples;
    return triples;
  }
};

/// Singular triples of a message's matrix, drawn so that they are right on average (docs/operators.md,
/// "atomo"). Source: ATOMO, Wang et al. 2018, arXiv 1806.04090.
class Atomo : public Codec {
 public:
  Atomo(CodecIdentity identity, size_t budget, MatrixLayout layout)
      : Codec(std::move(identity)), budget_(budget), layout_(layout) {}

 protected:
  PayloadSize do_payload_size(const MessageMeta& meta) const override {
    return {sizeof(uint32_t) + shape_of(meta).elements * sizeof(float), false};
  }

  void do_encode(std::span<const float> x, const MessageMeta& meta, const MessageContext& context,
                 ByteWriter& out) const override {
    const MatrixShape shape = shape_of(meta);
    if (!kernels::all_finite(x)) throw NumericError("a value is not finite");
    KeptTriples& kept = KeptTriples::own();
    draw_triples(x, shape, make_dither(context, meta), kept);
    check_products(kept.left, kept.right, shape);
    const size_t count = kept.left.size() / shape.rows;
    if (is_short(count, shape)) {
      out.put(static_cast<uint32_t>(count));
      for (const auto* factor : {&kept.left, &kept.right}) {
        kernels::copy_finite(*factor, out.claim(factor->size() * sizeof(float)));
      }
      return;
    }
    out.put(kAllElements);
    std::vector<float> all(x.size());
    multiply_out(kept.left, kept.right, shape, all);
    kernels::copy_finite(all, out.claim(x.size_bytes()));
  }

  void do_decode(ByteReader& in, const MessageMeta& meta, const MessageContext& /*context*/,
                 std::span<float> out) const override {
    const MatrixShape shape = shape_of(meta);
    const auto count = in.get<uint32_t>();
    if (count == kAllElements) return read_values(in, out);
    if (count > std::min(shape.rows, shape.columns) || !is_short(count, shape)) {
      throw WireError("{} triples are not sent of a matrix of {} rows and {} columns", count, shape.rows,
                      shape.columns);
    }
    KeptTriples& kept = KeptTriples::own();
    kept.left.resize(count * shape.rows);
    kept.right.resize(count * shape.columns);
    for (auto* factor : {&kept.left, &kept.right}) read_values(in, *factor);
    if (!multiply_out(kept.left, kept.right, shape, out)) {
      throw WireError("the product of the factors is past float32");
    }
  }

 private:
  static void read_values(ByteReader& in, std::span<float> out) {
    if (!kernels::copy_finite(in.take(out.size_bytes()), out)) throw WireError("a float32 value is not finite");
  }

  /// Whether so many triples take fewer bytes than the elements.
  static bool is_short(size_t count, const MatrixShape& shape) {
    return shape.factor_bytes(count) < shape.elements * sizeof(float);
  }

  MatrixShape shape_of(const MessageMeta& meta) const {
    const MatrixShape shape = matrix_of(meta, layout_);
    check_that_it_saves(spec(), meta, shape, sizeof(uint32_t) + shape.factor_bytes(budget_));
    return shape;
  }

  /// Triple i is kept where 32 bits of the draw at i are below its probability.
  void draw_triples(std::span<const float> x, const MatrixShape& shape, const kernels::Dither& draws,
                    KeptTriples& kept) const {
    const auto rows = static_cast<int64_t>(shape.rows);
    const auto columns = static_cast<int64_t>(shape.columns);
    const at::Tensor matrix = at::zeros({rows * columns}, at::kDouble);
    const auto count = static_cast<int64_t>(x.size());
    matrix.narrow(0, 0, count).copy_(Scope::tensor_over(x, {{count}}));
    const auto [u, s, v] = at::linalg_svd(matrix.view({rows, columns}), /*full_matrices=*/false);
    const at::Tensor left = u.contiguous();
    const at::Tensor right = v.contiguous();
    const at::Tensor values = s.contiguous();
    const std::span sigma(values.data_ptr<double>(), static_cast<size_t>(values.numel()));
    const auto probabilities = probabilities_of(sigma, budget_);
    kept.left.clear();
    kept.right.clear();
    for (size_t i = 0; i < sigma.size(); ++i) {
      if (draw_at(draws, draws.first_index + i) >= probabilities[i] * 0x1p32) continue;
      const double scale = sigma[i] / probabilities[i];
      const double* const from = left.data_ptr<double>() + i;
      for (size_t k = 0; k < shape.rows; ++k) {
        kept.left.push_back(static_cast<float>(scale * from[k * sigma.size()]) + 0.0F);  // never -0
      }
      const double* const beside = right.data_ptr<double>() + i * shape.columns;
      for (size_t k = 0; k < shape.columns; ++k) kept.right.push_back(static_cast<float>(beside[k]) + 0.0F);
    }
  }

  size_t budget_;  ///< triples that are kept in the mean
  MatrixLayout layout_;
};

}  // namespace

std::unique_ptr<Codec> make_atomo(CodecIdentity identity, OperatorSpec spec) {
  constexpr int64_t kMost = 1024;
  const int64_t budget = spec.integer(spec.argument("the triples"), "the number of triples", 1, kMost);
  const MatrixLayout layout = matrix_layout_from(spec);
  spec.finish();
  return std::make_unique<Atomo>(std::move(identity), static_cast<size_t>(budget), layout);
}

}  // namespace strait
