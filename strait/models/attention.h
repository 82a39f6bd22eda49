#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace strait {

/// softmax(q k^T / sqrt(D)) v for each sample and head, where a query sees its own and the keys before it. q,
/// k, v and the result are [B, H, T, D]. With a dropout probability above 0 the attention weights, [B, H, T,
/// T], go through dropout() at `place` before v.
///
/// For the backward pass q, k and v are kept and the weights computed again, by blocks of queries, so that
/// memory grows with T and not with its square (Rabe and Staats 2021). LibTorch 2.x runs its own fused function
/// where there is no dropout.
at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double dropout = 0,
                            uint64_t place = 0);

}  // namespace strait
