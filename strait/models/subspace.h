#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>

namespace strait {

/// What the layers of a decoder know together of the subspace in which its residual stream lies (Ramasinghe et
/// al. 2025, arXiv 2506.01260): at a token t the stream is x = z U^T + E[t], with an orthonormal basis U and
/// frozen embeddings E. Both are functions of a seed alone, with the same bits on every machine, so that each
/// process makes its own.
class SubspaceTables {
 public:
  /// U is [width, rank], rank below width; E is [vocab, width], uniform numbers with the mean 0 and this
  /// deviation.
  SubspaceTables(int64_t width, int64_t rank, int64_t vocab, double deviation)
      : width_(width), rank_(rank), vocab_(vocab), deviation_(deviation) {}

  /// Makes those of a seed, which is 0 or above, unless it has just done so; double with such numbers, else
  /// float32.
  void make(int64_t seed, const at::TensorOptions& numbers);

  /// U, as make() left it.
  const at::Tensor& basis() const { return basis_; }

  /// E, likewise.
  const at::Tensor& embedding() const { return embedding_; }

 private:
  int64_t width_;
  int64_t rank_;
  int64_t vocab_;
  double deviation_;
  int64_t seed_ = -1;
  at::Tensor basis_;
  at::Tensor embedding_;
};

/// A layer's way from the coordinates z, which layers hand on, to the residual stream. Its buffer `seed` goes
/// into files, from which the tables come back.
class Subspace : public torch::nn::Module {
 public:
  /// The tables are those of the network.
  Subspace(std::shared_ptr<SubspaceTables> tables, int64_t seed)
      : tables_(std::move(tables)), seed_(register_buffer("seed", torch::tensor(seed, at::kLong))) {}

  /// x = z U^T + E[t]: of z, [B, T, rank], and tokens, [B, T] int64, gives [B, T, width].
  at::Tensor stream(const at::Tensor& z, const at::Tensor& tokens) const;

 private:
  std::shared_ptr<SubspaceTables> tables_;
  at::Tensor seed_;
};

}  // namespace strait
