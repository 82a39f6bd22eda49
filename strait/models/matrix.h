#pragma once

#include <torch/torch.h>

#include <utility>

namespace strait {

/// A parameter `weight` by itself.
class Matrix : public torch::nn::Module {
 public:
  /// Begins with the values.
  explicit Matrix(at::Tensor values) : weight_(register_parameter("weight", std::move(values))) {}
  /// The parameter.
  const at::Tensor& weight() const { return weight_; }

 private:
  at::Tensor weight_;
};

/// The rows of `weight`, [V, W], that tokens name: of [B, T] int64 gives [B, T, W]. Throws InputError for a
/// token without a row.
at::Tensor embedded(const at::Tensor& weight, const at::Tensor& tokens);

}  // namespace strait
