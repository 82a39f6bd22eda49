#include "strait/train/generator.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "strait/base/error.h"

namespace strait {
namespace {

constexpr uint64_t kTokenTag = 0x746f6b656e;  // "token"

/// The numbers of the options' most likely tokens, falling.
at::Tensor shortlist(const at::Tensor& logits, const SamplingOptions& options) {
  const int64_t wanted = options.temperature == 0 ? 1 : options.top_k == 0 ? logits.size(0) : options.top_k;
  const auto [values, tokens] = at::sort(logits, /*stable=*/true, /*dim=*/0, /*descending=*/true);
  return tokens.slice(0, 0, std::min(wanted, logits.size(0)));
}

}  // namespace

int64_t draw_token(const at::Tensor& logits, const SamplingOptions& options, double uniform) {
  const int64_t count = options.tokens == 0 ? logits.size(0) : std::min(options.tokens, logits.size(0));
  const at::Tensor all = logits.narrow(0, 0, count).to(at::kCPU, at::kDouble);
  if (!all.isfinite().all().item<bool>()) throw NumericError("a logit of the next token is not finite");
  const at::Tensor tokens = shortlist(all, options);
  if (tokens.size(0) == 1) return tokens.item<int64_t>();
  const at::Tensor chosen = all.index_select(0, tokens);
  // Nothing is above 0, so that of the smallest temperature no quotient is NaN.
  const at::Tensor sums = at::softmax((chosen - chosen[0]) / options.temperature, 0).cumsum(0);
  const auto* begin = sums.data_ptr<double>();
  const auto* end = begin + sums.size(0);
  const auto place = std::upper_bound(begin, end - 1, uniform * *(end - 1)) - begin;
  return tokens[place].item<int64_t>();
}

Generator::Generator(Model model, const std::vector<std::string>& cuts, const CompressionOptions& compression,
                     int64_t context)
    : model_(std::move(model)), context_(context), stages_(cut_into_stages(model_, cuts)) {
  for (size_t i = 0; i < cuts.size(); ++i) {
    boundaries_.emplace_back(cuts[i], static_cast<uint16_t>(i), links_of(compression, cuts[i]),
                             compression.diagnostics, BoundaryEndpoints::Local{});
  }
  model_.train(false);
}

std::vector<int64_t> Generator::generate(std::vector<int64_t> text, int64_t count, bool compressed,
                                         const SamplingOptions& options,
                                         const std::function<bool(int64_t)>& on_token) {
  STRAIT_CHECK(!text.empty(), "a text to continue has at least one token");
  const at::NoGradGuard no_grad;
  const size_t given = text.size();
  CounterRandom random(make_key(kTokenTag, options.seed));
  for (int64_t i = 0; i < count; ++i) {
    text.push_back(draw_token(next_logits(text, compressed), options, random.uniform()));
    if (!on_token(text.back())) break;
  }
  text.erase(text.begin(), text.begin() + static_cast<ptrdiff_t>(given));
  return text;
}

at::Tensor Generator::next_logits(const std::vector<int64_t>& text, bool compressed) {
  const auto length = std::min(static_cast<int64_t>(text.size()), context_);
  const at::Device device = model_.parameters().front().device();
  const at::IntArrayRef end = at::IntArrayRef(text).slice(text.size() - static_cast<size_t>(length));
  std::vector<at::Tensor> x = {at::tensor(end, at::kLong).unsqueeze(0).to(device)};
  for (size_t i = 0; i < stages_.size(); ++i) {
    x = model_.run(std::move(x), stages_[i].begin, stages_[i].end);
    if (i < boundaries_.size()) x.front() = cross(boundaries_[i], x.front(), compressed);
  }
  return x.front()[0][length - 1];
}

at::Tensor Generator::cross(BoundaryEndpoints& boundary, const at::Tensor& x, bool compressed) const {
  const MessageMode mode{.training = false, .compressed = compressed};
  return boundary.activations.cross(x, {}, mode, FrameCheck::trust);
}

}  // namespace strait
