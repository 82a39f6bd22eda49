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
constexpr double kNoError = 0.02;        // that turns nothing
constexpr double kSurest = 0.99;         // of a codec with more
constexpr double kLeastInCommon = 0.15;  // of what the gradients of two batches are; of many pairs less
constexpr double kFaded = 0.7;           // what batches count for beside those of the next choice

/// As matrices of positions by features.
at::Tensor by_feature(const at::Tensor& x) {
  const at::Tensor rows = x.dim() > 3   ? x.flatten(2).transpose(1, 2)
                          : x.dim() > 1 ? x.reshape({1, -1, x.size(-1)})
                                        : x.reshape({1, -1, 1});
  const int64_t step = (rows.size(2) + kMostFeatures - 1) / kMostFeatures;
  return step > 1 ? rows.slice(2, 0, std::nullopt, step) : rows;
}

/// The layer's gradient, of a message of gradients and the activations as by_feature() has them, less their
/// mean.
at::Tensor layer_gradient(const at::Tensor& gradients, const at::Tensor& activations) {
  return at::bmm(by_feature(gradients).transpose(1, 2), activations).sum(0, false, at::kDouble);
}

double product(const at::Tensor& x, const at::Tensor& y) { return (x * y).sum().item<double>(); }

}  // namespace

LayerCosines::LayerCosines(std::vector<std::shared_ptr<const Link>> codecs) {
  for (auto& link : codecs) codecs_.push_back({std::move(link)});
}

void LayerCosines::add(std::span<const KeptMessage> activations, std::span<const KeptMessage> gradients) {
  std::map<uint32_t, const KeptMessage*> arrived;
  for (const auto& message : activations) arrived[message.context.micro_batch] = &message;
  std::vector<at::Tensor> of_messages;
  std::vector<KeptMessage> returned;
  for (const auto& message : gradients) {
    const auto found = arrived.find(message.context.micro_batch);
    if (found == arrived.end()) continue;
    const at::Tensor x = by_feature(found->second->tensor);
    of_messages.push_back(x - x.mean({0, 1}, /*keepdim=*/true));
    returned.push_back(message);
  }
  if (returned.empty()) return;
  at::Tensor plain;
  for (size_t i = 0; i < returned.size(); ++i) {
    const at::Tensor part = layer_gradient(returned[i].tensor, of_messages[i]);
    plain = plain.defined() ? plain + part : part;
  }
  for (auto& codec : codecs_) {
    if (!(codec.is_exact && codec.is_checked) && !codec.is_refused)
      add_codec(codec, of_messages, returned, plain);
  }
  plain_.gradient = plain_.gradient.defined() ? plain_.gradient + plain : plain;
  plain_.square += product(plain, plain);
  batches_ += 1;
  of_squares_ += 1;
}

void LayerCosines::add_codec(Tried& codec, std::span<const at::Tensor> activations,
                             std::span<const KeptMessage> gradients, const at::Tensor& plain) {
  at::Tensor sum;
  try {
    for (size_t i = 0; i < gradients.size(); ++i) {
      const auto& [tensor, context] = gradients[i];
      ChannelEndpoints channel(ChannelSpec{.boundary_name = "of a trial",
                                           .boundary = context.boundary,
                                           .direction = context.direction,
                                           .link = codec.link});
      const at::Tensor received = channel.cross(tensor, context);
      if (codec.is_exact) {
        codec.is_checked = true;
        if (ErrorStatistics(tensor, received).relative_error() <= kNoError) return;
        codec.is_exact = false;
        codec.sums = {plain_.gradient, plain_.square, plain_.square};
      }
      const at::Tensor part = layer_gradient(received, activations[i]);
      sum = sum.defined() ? sum + part : part;
    }
  } catch (const NumericError&) {
    codec.is_refused = true;
    return;
  }
  Sums& sums = codec.sums;
  sums.gradient = sums.gradient.defined() ? sums.gradient + sum : sum;
  sums.square += product(sum, sum);
  sums.product += product(sum, plain);
}

void LayerCosines::fade() {
  const auto faded = [](Sums& sums) {
    if (sums.gradient.defined()) sums.gradient = sums.gradient * kFaded;
    sums.square *= kFaded * kFaded;
    sums.product *= kFaded * kFaded;
  };
  for (auto& codec : codecs_) {
    codec.is_checked = false;
    if (std::exchange(codec.is_refused, false))
      codec.is_exact = true;
    else
      faded(codec.sums);
  }
  faded(plain_);
  batches_ *= kFaded;
  of_squares_ *= kFaded * kFaded;
}

std::vector<double> LayerCosines::cosines() const {
  std::vector<double> all;
  for (const auto& codec : codecs_) all.push_back(cosine_of(codec));
  return all;
}

// A gradient's square is what batches have in common, and what is their own. Between batches there is the first
// alone in expectation; how surely it can be told from nothing grows with the root of the number of pairs.
double LayerCosines::cosine_of(const Tried& codec) const {
  if (codec.is_refused) return 0;
  if (codec.is_exact || plain_.square == 0) return 1;
  const double pairs = batches_ * batches_ - of_squares_;  // each way round
  const auto between = [&](const Sums& one, const Sums& other, double within) {
    return pairs > 0 ? (product(one.gradient, other.gradient) - within) / pairs : 0;
  };
  const auto own = [&](double within) { return within / of_squares_; };
  const Sums& with = codec.sums;
  const double without = between(plain_, plain_, plain_.square);
  const double least = kLeastInCommon / std::sqrt(std::max(1.0, pairs / 2));
  const double share = std::max(0.0, least - without / own(plain_.square));
  const double in_common_with = between(with, with, with.square) + share * own(with.square);
  const double in_common = between(plain_, with, with.product) + share * own(with.product);
  if (in_common_with <= 0) return 0;
  const double plain = without + share * own(plain_.square);
  return std::clamp(in_common / std::sqrt(in_common_with * plain), 0.0, kSurest);
}

}  // namespace strait
