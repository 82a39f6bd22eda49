#pragma once

#include "strait/models/model.h"

namespace strait {

/// The initial values are those of the small published model.
struct Gpt2Options {
  int64_t width = 768;     ///< of an embedding
  int64_t layers = 12;     ///< blocks
  int64_t heads = 12;      ///< of attention; divides width
  int64_t context = 1024;  ///< positions that have an embedding
  int64_t vocab = 50257;   ///< tokens
  double dropout = 0.1;    ///< of embeddings, attention weights and residual branches
  bool recompute = false;  ///< blocks keep their input only, and run again in the backward pass
  int64_t subspace = 0;    ///< dimensions of the subspace of the residual stream, below width; 0: all of it
};

/// GPT-2 (Radford et al. 2019) for samples of `block` tokens, at most options.context: input [B, T] int64,
/// output [B, T, vocab], logits of the token that follows each. Layers: embed, h.0, h.1, ..., head. The
/// parameters' names and layouts are those of the published file (Hugging Face's, without prefix): the
/// projections are [in, out]. The head's matrix, lm_head.weight, is tied to wte.weight. The forward pass throws
/// InputError for a token that has no embedding.
///
/// With a subspace of r dimensions the residual stream is x = z U^T + E[token] (Subspace): what writes into it,
/// the output projections of blocks with their biases and the embeddings, has r columns in place of `width`,
/// whose product with U^T is the published network's. Layers hand on z, [B, T, r], and the tokens; dropout of
/// the stream acts on z. The head is free, not tied. U and E belong to a seed, drawn from LibTorch's global
/// generator, that each layer which reads the stream has as a buffer, `h.0.subspace.seed` and so on.
Model make_gpt2(const Gpt2Options& options, int64_t block);

}  // namespace strait
