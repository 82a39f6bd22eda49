#include "strait/boundary/layer_cosines.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "strait/base/error.h"
#include "strait/boundary/channel_endpoints.h"
#include "strait/codecs/error_statistics.h"

namespace strait {
namespace {

constexpr int64_t kMostFeatures = 256;
constexpr double kLeastInCommon = 0.3;  // of what the gradients of two micro-batches are; of many pairs less
constexpr double kFaded = 0.5;          // what batches count for beside those of the next choice

/// Messages of the same micro-batch.
struct Both {
  at::Tensor activations;  ///< as by_feature() has them, less their mean
  const KeptMessage* gradients = nullptr;
};

/// As samples, of positions by features.
at::Tensor by_feature(const at::Tensor& x) {
  const at::Tensor rows = x.dim() > 3   ? x.flatten(2).transpose(1, 2)
                          : x.dim() > 1 ? x.reshape({x.size(0), -1, x.size(-1)})
                                        : x.reshape({-1, 1, 1});
  const int64_t step = (rows.size(2) + kMostFeatures - 1) / kMostFeatures;
  return step > 1 ? rows.slice(2, 0, rows.size(2), step) : rows;
}

std::vector<Both> in_pairs(std::span<const KeptMessage> activations, std::span<const KeptMessage> gradients) {
  std::map<uint32_t, const KeptMessage*> arrived;
  for (const auto& message : activations) arrived[message.context.micro_batch] = &message;
  std::vector<Both> pairs;
  for (const auto& message : gradients) {
    const auto found = arrived.find(message.context.micro_batch);
    if (found == arrived.end()) continue;
    const at::Tensor x = by_feature(found->second->tensor);
    pairs.push_back({x - x.mean(at::IntArrayRef({0, 1}), /*keepdim=*/true), &message});
  }
  return pairs;
}

/// The layer's gradient of each micro-batch, or of the halves of the only one: a row each.
at::Tensor layer_gradients(const std::vector<Both>& batch, const std::vector<at::Tensor>& gradients) {
  std::vector<at::Tensor> all;
  for (size_t i = 0; i < batch.size(); ++i) {
    const at::Tensor& x = batch[i].activations;
    const at::Tensor g = by_feature(gradients[i]);
    const int64_t parts = batch.size() == 1 ? std::min<int64_t>(2, x.size(0)) : 1;
    const auto x_parts = x.chunk(parts);
    const auto g_parts = g.chunk(parts);
    for (size_t part = 0; part < x_parts.size(); ++part) {
      all.push_back(at::mm(g_parts[part].flatten(0, 1).t(), x_parts[part].flatten(0, 1)).flatten());
    }
  }
  return at::stack(all).to(at::kDouble);
}

/// What arrives of the batch's gradients through the link; nothing where the first has hardly an error.
std::optional<std::vector<at::Tensor>> arrived_of(const std::vector<Both>& batch,
                                                  const std::shared_ptr<const Link>& link, double small_error) {
  const MessageContext& first = batch.front().gradients->context;
  ChannelEndpoints channel(ChannelSpec{
      .boundary_name = "of a trial", .boundary = first.boundary, .direction = first.direction, .link = link});
  std::vector<at::Tensor> arrived;
  for (const auto& both : batch) {
    const auto& [tensor, context] = *both.gradients;
    arrived.push_back(channel.cross(tensor, context));
    if (arrived.size() > 1) continue;
    if (ErrorStatistics(tensor, arrived.front()).relative_error() <= small_error) return std::nullopt;
  }
  return arrived;
}

LayerCosines::Products products_of(const at::Tensor& x, const at::Tensor& y) {
  const double within = (x * y).sum().item<double>();
  return {.between = (x.sum(0) * y.sum(0)).sum().item<double>() - within, .within = within};
}

}  // namespace

LayerCosines::Products& LayerCosines::Products::operator+=(const Products& more) {
  between += more.between;
  within += more.within;
  return *this;
}

LayerCosines::Sums& LayerCosines::Sums::operator+=(const Sums& more) {
  plain += more.plain;
  crossed += more.crossed;
  coded += more.coded;
  pairs += more.pairs;
  micro_batches += more.micro_batches;
  is_refused = is_refused || more.is_refused;
  return *this;
}

// How surely what micro-batches have in common can be told from nothing grows with the root of the number of
// pairs. Without the codec the mean of micro-batches' own products is 1, as add() scales them.
std::optional<double> LayerCosines::Sums::cosine() const {
  if (is_refused) return 0;
  if (micro_batches == 0) return std::nullopt;
  const auto mean = [](double sum, double count) { return count > 0 ? sum / count : 0; };
  const double least = kLeastInCommon / std::sqrt(std::max(1.0, pairs / 2));
  const double share = std::max(0.0, least - mean(plain.between, pairs));
  const auto in_common = [&](const Products& products) {
    return mean(products.between, pairs) + share * mean(products.within, micro_batches);
  };
  if (in_common(coded) <= 0) return 0;
  const double length = std::sqrt(in_common(coded) * in_common(plain));
  return std::clamp(in_common(crossed) / length, 0.0, 1.0);
}

LayerCosines::LayerCosines(std::vector<std::shared_ptr<const Link>> codecs)
    : codecs_(std::move(codecs)), sums_(codecs_.size()) {}

void LayerCosines::set_sums(std::vector<Sums> sums) {
  STRAIT_CHECK(sums.size() == codecs_.size(), "one for each codec");
  sums_ = std::move(sums);
}

void LayerCosines::add(std::span<const KeptMessage> activations, std::span<const KeptMessage> gradients,
                       double small_error) {
  const std::vector<Both> batch = in_pairs(activations, gradients);
  if (batch.empty()) return;
  std::vector<at::Tensor> sent;
  sent.reserve(batch.size());
  for (const auto& both : batch) sent.push_back(both.gradients->tensor);
  at::Tensor without = layer_gradients(batch, sent);
  const auto micro_batches = static_cast<double>(without.size(0));
  const double size = without.norm().item<double>() / std::sqrt(micro_batches);  // of one of them
  if (size == 0 || !std::isfinite(size)) return;
  without = without / size;
  const Products own = products_of(without, without);
  for (size_t i = 0; i < codecs_.size(); ++i) {
    Sums& sums = sums_[i];
    std::optional<std::vector<at::Tensor>> arrived;
    try {
      arrived = arrived_of(batch, codecs_[i], small_error);
    } catch (const NumericError&) {
      sums.is_refused = true;
    }
    if (!arrived) continue;
    const at::Tensor with = layer_gradients(batch, *arrived) / size;
    const Products coded = products_of(with, with);
    if (!std::isfinite(coded.within)) {
      sums.is_refused = true;
      continue;
    }
    sums += {.plain = own,
             .crossed = products_of(without, with),
             .coded = coded,
             .pairs = micro_batches * (micro_batches - 1),
             .micro_batches = micro_batches};
  }
}

void LayerCosines::fade() {
  for (auto& sums : sums_) {
    for (double* sum : {&sums.plain.between, &sums.plain.within, &sums.crossed.between, &sums.crossed.within,
                        &sums.coded.between, &sums.coded.within, &sums.pairs, &sums.micro_batches})
      *sum *= kFaded;
    sums.is_refused = false;
  }
}

}  // namespace strait
