#pragma once

#include <cstdint>

#include "strait/models/model.h"

namespace strait {

/// How the rotary frequencies of a network are slowed down for a longer context than it was trained with first,
/// Llama 3.1's rule (Hugging Face's rope_type "llama3"): those that turn at most `low` times within `context`
/// tokens are divided by `factor`, those that turn at least `high` times are kept, and between them the share
/// that is kept grows with the turns.
struct RopeScaling {
  double factor = 1;       ///< 1: all frequencies are kept (factor)
  double low = 1;          ///< turns (low_freq_factor)
  double high = 4;         ///< turns, more than low (high_freq_factor)
  int64_t context = 8192;  ///< tokens (original_max_position_embeddings)
};

/// The initial values are those of SmolLM-135M.
struct LlamaOptions {
  int64_t width = 576;     ///< of an embedding (hidden_size)
  int64_t layers = 30;     ///< blocks (num_hidden_layers)
  int64_t heads = 9;       ///< of attention (num_attention_heads); divides width into even parts
  int64_t kv_heads = 3;    ///< heads of keys and values (num_key_value_heads); divides heads
  int64_t hidden = 1536;   ///< of the perceptron (intermediate_size)
  int64_t context = 2048;  ///< the most tokens of a sample (max_position_embeddings)
  int64_t vocab = 49152;   ///< tokens (vocab_size)
  double theta = 10000;    ///< base of the rotary frequencies (rope_theta)
  double eps = 1e-5;       ///< of the norms (rms_norm_eps)
  bool tied = true;        ///< the head's matrix is the embedding's (tie_word_embeddings)
  bool recompute = false;  ///< blocks keep their input only, and run again in the backward pass

  int64_t head_size = 0;  ///< numbers of a head, even (head_dim); 0: width / heads
  bool qkv_bias = false;  ///< queries, keys and values have biases, as in Qwen2
  bool qk_norm = false;   ///< RMSNorm of each head's queries and keys before they are turned, as in Qwen3
  RopeScaling scaling{};  ///< of the rotary frequencies, as in Llama 3.1
};

/// A decoder as Llama is one (Touvron et al. 2023; grouped-query attention as in Llama 2), for samples of
/// `block` tokens, at most options.context: input [B, T] int64, output [B, T, vocab], logits of the token that
/// follows each. A block is x + attention(norm(x)), then x + perceptron(norm(x)), with RMSNorm (Zhang and
/// Sennrich 2019), rotary positions (Su et al. 2021) in Hugging Face's order, where element i turns with
/// element i + D/2 of a head, and SwiGLU (Shazeer 2020). With the options that say so it is one as Mistral,
/// Qwen2, Qwen3 or Llama 3.1 and later.
///
/// Layers: embed, layers.0, layers.1, ..., norm, head. The parameters' names and layouts are those of Hugging
/// Face's LlamaForCausalLM, and of its Mistral, Qwen2 and Qwen3 likewise. Where the head is tied it has a copy
/// of its own (Model::ties). The forward pass throws InputError for a token that has no embedding.
Model make_llama(const LlamaOptions& options, int64_t block);

}  // namespace strait
