#pragma once

#include <string>
#include <vector>

namespace strait {

/// The [model] table of a configuration.
struct ModelOptions {
  std::string kind = "resnet18";  ///< resnet18 | gpt2
  int width = 64;                 ///< channels of the first group; of an embedding
  std::vector<std::string> cuts = {"layer1", "layer2", "layer3"};  ///< a stage ends after each of these layers

  // Of GPT-2.
  int layers = 12;         ///< blocks
  int heads = 12;          ///< of attention; divides width
  int context = 1024;      ///< positions that have an embedding
  int vocab = 50257;       ///< tokens
  double dropout = 0.1;    ///< of embeddings, attention weights and residual branches
  std::string init = {};   ///< a safetensors file with Hugging Face's names to start from; empty: drawn
  bool recompute = false;  ///< blocks keep their input only, and run again in the backward pass

  bool operator==(const ModelOptions&) const = default;
};

}  // namespace strait
