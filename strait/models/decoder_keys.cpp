#include "strait/models/decoder_keys.h"

#include <fmt/format.h>

namespace strait {

SettingKey init_key() {
  return {"init", "", path_text(),
          "safetensors file of weights to start from, under Hugging Face's names, or the folder of such a "
          "model; empty: "
          "drawn from the seed"};
}

SettingKey recompute_key() {
  return {"recompute", false, yes_or_no(),
          "keep only the blocks' inputs and run the blocks again in the backward pass, to save memory"};
}

std::optional<SettingComplaint> heads_complaint(const Settings& settings) {
  const int64_t width = settings.integer("width");
  const int64_t heads = settings.integer("heads");
  if (width % heads == 0) return std::nullopt;
  return SettingComplaint{
      "heads", fmt::format("expected a divisor of model.width, which is {}, found {}", width, heads)};
}

std::optional<SettingComplaint> context_complaint(const Settings& settings, const SampleForm& samples) {
  const int64_t context = settings.integer("context");
  if (samples.shape.empty() || samples.shape[0] <= context) return std::nullopt;
  return SettingComplaint{"context", fmt::format("expected at least {}, the tokens of a sample, found {}",
                                                 samples.shape[0], context)};
}

}  // namespace strait
