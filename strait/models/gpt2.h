#pragma once

#include "strait/models/model.h"

namespace strait {

/// GPT-2 (Radford et al. 2019) for samples of `block` tokens, at most options.context: input [B, T] int64,
/// output [B, T, vocab], logits of the token that follows each. Layers: embed, h.0, h.1, ..., head. The
/// parameters' names and layouts are those of the published file (Hugging Face's, without prefix): the
/// projections are [in, out]. The head's matrix, lm_head.weight, is tied to wte.weight. Options: width, layers,
/// heads (a divisor of width), context, vocab, dropout, recompute. The forward pass throws InputError for a
/// token that has no embedding.
Model make_gpt2(const ModelOptions& options, int64_t block);

}  // namespace strait
