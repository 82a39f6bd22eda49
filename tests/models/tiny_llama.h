#pragma once

#include "strait/models/llama.h"

namespace strait::test {

/// Two blocks with four heads of six numbers, two of keys and values; 19 tokens.
inline LlamaOptions tiny_llama(bool tied) {
  return {.width = 24,
          .layers = 2,
          .heads = 4,
          .kv_heads = 2,
          .hidden = 20,
          .context = 10,
          .vocab = 19,
          .theta = 10000,
          .eps = 1e-5,
          .tied = tied};
}

}  // namespace strait::test
