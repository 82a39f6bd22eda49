#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "strait/base/random.h"
#include "strait/boundary/boundary.h"
#include "strait/models/model.h"

namespace strait {

/// How the next token is drawn from a model's logits.
struct SamplingOptions {
  double temperature = 1.0;  ///< divides the logits; 0 = the most likely token
  int64_t top_k = 0;         ///< draw among the most likely so many; 0 = among all
  uint64_t seed = 0;         ///< of the draws
  int64_t tokens = 0;        ///< draw among the first so many, those that have a text; 0 = among all
};

/// Draws a token from logits, [V]: the same for the same number `uniform` in [0, 1), on every device.
/// Throws NumericError when a logit is not finite.
int64_t draw_token(const at::Tensor& logits, const SamplingOptions& options, double uniform);

/// Continues a text with a language model that is cut into stages; what crosses a cut is really encoded and
/// decoded, as evaluation in the mode plain does it. Each token takes a pass over the whole text before it, or
/// its last `context` tokens, because the sparse operators see a whole sample.
class Generator {
 public:
  /// The model has its weights. Throws InputError for cuts or codecs that are wrong.
  Generator(Model model, const std::vector<std::string>& cuts, const CompressionOptions& compression,
            int64_t context);

  /// The `count` tokens after the text, which has at least one; each is also handed to `on_token` at once.
  /// False from `on_token` ends the text there.
  std::vector<int64_t> generate(std::vector<int64_t> text, int64_t count, bool compressed,
                                const SamplingOptions& options, const std::function<bool(int64_t)>& on_token);

 private:
  at::Tensor next_logits(const std::vector<int64_t>& text, bool compressed);
  at::Tensor cross(BoundaryEndpoints& boundary, const at::Tensor& x, bool compressed) const;

  Model model_;
  int64_t context_;
  std::vector<LayerRange> stages_;
  std::vector<BoundaryEndpoints> boundaries_;
};

}  // namespace strait
