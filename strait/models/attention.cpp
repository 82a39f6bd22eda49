#include "strait/models/attention.h"

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "strait/base/error.h"
#include "strait/models/dropout.h"

namespace strait {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kQueries = 128;  // of a block: its weights are heads * 128 * T numbers per sample

/// Queries [begin, end), which see the keys [0, end).
struct QueryBlock {
  int64_t begin;
  int64_t end;

  int64_t size() const { return end - begin; }
  at::Tensor queries(const at::Tensor& x) const { return x.narrow(1, begin, size()); }
  at::Tensor keys(const at::Tensor& x) const { return x.narrow(1, 0, end); }
};

template <class Work>
void for_each_block(int64_t tokens, const Work& work) {
  for (int64_t begin = 0; begin < tokens; begin += kQueries) {
    work(QueryBlock{begin, std::min(begin + kQueries, tokens)});
  }
}

/// The weights of a block, [B * H, queries, keys], from its scaled queries and all keys.
at::Tensor weights_of(const QueryBlock& block, const at::Tensor& scaled, const at::Tensor& k) {
  const at::Tensor scores = at::bmm(scaled, block.keys(k).transpose(1, 2));
  const at::Tensor later = at::ones({block.size(), block.size()}, scores.options().dtype(at::kBool)).triu_(1);
  scores.narrow(2, block.begin, block.size()).masked_fill_(later, -std::numeric_limits<double>::infinity());
  return at::softmax(scores, -1);
}

/// What both passes must know, beside q, k and v.
struct Setting : torch::CustomClassHolder {
  DropoutRng draws;
  int64_t heads = 0;

  /// What dropout multiplies a block's weights with; in float32 on the CPU.
  at::Tensor factors(const QueryBlock& block, int64_t rows, int64_t tokens) const {
    at::Tensor mask = at::empty({rows, block.size(), block.end}, at::kFloat);
    const std::span<float> all(mask.data_ptr<float>(), static_cast<size_t>(mask.numel()));
    const auto keys = static_cast<size_t>(block.end);
    at::parallel_for(0, rows * block.size(), kQueries, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i / block.size();
        const int64_t query = block.begin + i % block.size();
        draws.fill(row / heads, (row % heads * tokens + query) * tokens,
                   all.subspan(static_cast<size_t>(i) * keys, keys));
      }
    });
    return mask;
  }

  /// The same, made on the device of `like`.
  at::Tensor factors_there(const QueryBlock& block, int64_t rows, int64_t tokens,
                           const at::Tensor& like) const {
    const auto numbers = [&](int64_t first, int64_t last, int64_t step) {
      return at::arange(first * step, last * step, step, like.options().dtype(at::kLong));
    };
    const at::Tensor index = numbers(0, heads, tokens * tokens).view({-1, 1, 1}) +
                             numbers(block.begin, block.end, tokens).view({-1, 1}) + numbers(0, block.end, 1);
    return draws.factors_at(rows / heads, index).flatten(0, 1);
  }

  /// The factors like the weights; undefined where there is no dropout.
  at::Tensor factors_like(const at::Tensor& weights, const QueryBlock& block, int64_t tokens) const {
    if (draws.probability == 0) return {};
    const int64_t rows = weights.size(0);
    const at::Tensor all =
        weights.is_cpu() ? factors(block, rows, tokens) : factors_there(block, rows, tokens, weights);
    return all.to(weights.scalar_type());
  }
};

at::Tensor dropped(const at::Tensor& x, const at::Tensor& factors) {
  return factors.defined() ? x * factors : x;
}

/// On [B * H, T, D].
class BlockAttention : public torch::autograd::Function<BlockAttention> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, const c10::intrusive_ptr<Setting>& setting) {
    context->save_for_backward({q, k, v});
    context->saved_data["setting"] = c10::IValue::make_capsule(setting);
    at::Tensor output = at::empty_like(v);
    for_each_block(q.size(1), [&](const QueryBlock& block) {
      const at::Tensor weights = weights_of(block, block.queries(q) * scale_of(q), k);
      const at::Tensor factors = setting->factors_like(weights, block, q.size(1));
      block.queries(output).copy_(at::bmm(dropped(weights, factors), block.keys(v)));
    });
    return output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& q = saved[0];
    const at::Tensor& k = saved[1];
    const at::Tensor& v = saved[2];
    const auto setting =
        c10::static_intrusive_pointer_cast<Setting>(context->saved_data["setting"].toCapsule());
    const at::Tensor dq = at::empty_like(q);
    const at::Tensor dk = at::zeros_like(k);
    const at::Tensor dv = at::zeros_like(v);
    for_each_block(q.size(1), [&](const QueryBlock& block) {
      const at::Tensor scaled = block.queries(q) * scale_of(q);
      const at::Tensor given = block.queries(gradients[0]);
      const at::Tensor weights = weights_of(block, scaled, k);
      const at::Tensor factors = setting->factors_like(weights, block, q.size(1));
      block.keys(dv).baddbmm_(dropped(weights, factors).transpose(1, 2), given);
      const at::Tensor of_weights = dropped(at::bmm(given, block.keys(v).transpose(1, 2)), factors);
      const at::Tensor of_scores = at::_softmax_backward_data(of_weights, weights, -1, weights.scalar_type());
      block.queries(dq).copy_(at::bmm(of_scores, block.keys(k)).mul_(scale_of(q)));
      block.keys(dk).baddbmm_(of_scores.transpose(1, 2), scaled);
    });
    return {dq, dk, dv, at::Tensor()};
  }

 private:
  static double scale_of(const at::Tensor& q) { return 1 / std::sqrt(static_cast<double>(q.size(2))); }
};

}  // namespace

at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double dropout,
                            uint64_t place) {
  STRAIT_CHECK(dropout >= 0 && dropout < 1, "attention with a dropout probability of {}", dropout);
#if TORCH_VERSION_MAJOR >= 2
  // A GPU adds up the gradients of its fused kernels in the order in which threads come, which differs from run
  // to run.
  if (dropout == 0 && q.is_cpu()) return at::scaled_dot_product_attention(q, k, v, {}, 0.0, /*is_causal=*/true);
#endif
  auto setting = c10::make_intrusive<Setting>();
  setting->draws = {current_rng_key(), dropout, place};
  setting->heads = q.size(1);
  const auto flat = [](const at::Tensor& x) { return x.flatten(0, 1); };
  return BlockAttention::apply(flat(q), flat(k), flat(v), setting).view(q.sizes());
}

}  // namespace strait
