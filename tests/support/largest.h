#pragma once

#include <ATen/ATen.h>

namespace strait::test {

/// The k elements of largest magnitude of each row, the others 0.
inline at::Tensor largest(const at::Tensor& x, int64_t k) {
  if (k == 0) return at::zeros_like(x);
  const at::Tensor kept = std::get<1>(x.abs().topk(k, 1));
  return at::zeros_like(x).scatter(1, kept, x.gather(1, kept));
}

}  // namespace strait::test
