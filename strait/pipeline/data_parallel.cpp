#include "strait/pipeline/data_parallel.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "strait/base/error.h"
#include "strait/pipeline/half_range.h"

namespace strait {
namespace {

Buffer copy_of(const Buffer& frame) {
  Buffer copy(frame.size());
  copy.resize(frame.size());
  std::memcpy(copy.data(), frame.data(), frame.size());
  return copy;
}

at::Tensor joined(std::span<const at::Tensor> gradients) {
  std::vector<at::Tensor> flat;
  flat.reserve(gradients.size());
  for (const auto& gradient : gradients) flat.push_back(gradient.reshape({1, -1}));
  return at::cat(flat, 1).to(at::kCPU, at::kFloat);
}

/// A parameter that this replica's batch did not touch has a gradient of zeros. One that is frozen sends zeros
/// too and has none, as its optimizer would move it with one.
at::Tensor joined_gradients(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> gradients;
  gradients.reserve(parameters.size());
  for (const auto& parameter : parameters) {
    const bool has_none = !parameter.grad().defined();
    gradients.push_back(has_none ? at::zeros_like(parameter) : parameter.grad());
    if (has_none && parameter.requires_grad()) parameter.mutable_grad() = gradients.back();
  }
  return joined(gradients);
}

void set_gradients(const std::vector<at::Tensor>& parameters, const at::Tensor& joined) {
  int64_t begin = 0;
  for (const auto& parameter : parameters) {
    const at::Tensor part = joined.narrow(1, begin, parameter.numel());
    if (parameter.grad().defined()) {
      parameter.grad().copy_(part.view(parameter.sizes()));
      expect_in_range(parameter.grad(), "gradients of replicas");
    }
    begin += parameter.numel();
  }
}

int64_t elements_of(const std::vector<at::Tensor>& parameters) {
  int64_t count = 0;
  for (const auto& parameter : parameters) count += parameter.numel();
  return count;
}

/// The channels that carry one stage's gradients.
struct StageChannels {
  StageChannels(DataParallel::Stage own, const RankTopology& place, int stage_count,
                const std::shared_ptr<const Link>& link)
      : stage(std::move(own)),
        meta{{1, elements_of(stage.parameters)}},
        peers(place.replica(), place.replicas, [&](int from) {
          // Numbered beyond the pipeline's boundaries.
          return ChannelSpec{.boundary_name = fmt::format("{} (from {})", DataParallel::kName, from),
                             .boundary = static_cast<uint16_t>((from + 1) * stage_count + stage.number),
                             .direction = Direction::gradient,
                             .link = link};
        }) {}

  DataParallel::Stage stage;
  MessageMeta meta;
  PeerChannels peers;  ///< the ranks are replicas
};

}  // namespace

class DataParallel::Replicas {
 public:
  Replicas(Group& group, const RankTopology& place, int stage_count, std::vector<Stage> stages,
           const std::shared_ptr<const Link>& link, uint64_t seed)
      : group_(group), place_(place), seed_(seed) {
    for (auto& stage : stages) channels_.emplace_back(std::move(stage), place_, stage_count, link);
    std::vector<int> peers(static_cast<size_t>(place.replicas), -1);
    for (const int other : others()) peers[connection_to(other)] = place_.rank_in(other);
    const std::vector<std::string> names(peers.size(), kName);
    transport_ = group.make_transport(std::move(peers), names);
  }

  bool needs_previous(uint64_t step, MessageMode mode) {
    return std::ranges::any_of(channels_, [&](StageChannels& channels) {
      return channels.peers.sender().needs_previous(context(channels, step), mode);
    });
  }

  void sum_gradients(uint64_t step, MessageMode mode, std::span<const at::Tensor> previous) {
    const at::NoGradGuard no_grad;
    try {
      for (auto& channels : channels_) {
        for (const int other : others()) {
          transport_->expect(tag(other, channels), channels.peers.receiver(other).frame_bound(channels.meta));
        }
      }
      std::vector<Buffer> own;
      for (auto& channels : channels_) {
        const size_t count = previous.empty() ? 0 : channels.stage.parameters.size();
        own.push_back(send(channels, step, mode, previous.first(count)));
        previous = previous.subspan(count);
      }
      for (size_t i = 0; i < channels_.size(); ++i) receive(channels_[i], std::move(own[i]), step, mode);
    } catch (...) {
      transport_->cancel();
      throw;
    }
  }

  void wait_for_first() {
    const std::string what = "sign of life in the evaluation";
    at::Tensor sign = at::zeros({1}, at::kByte);
    if (place_.replica() > 0) return group_.receive(sign, place_.rank_in(0), what);
    for (const int other : others()) group_.send(sign, place_.rank_in(other), what);
  }

  Traffic take_traffic() {
    const auto copies = static_cast<uint64_t>(place_.replicas) - 1;
    Traffic all;
    for (auto& channels : channels_) {
      Traffic sent = channels.peers.sender().take_traffic();
      for (uint64_t* count : {&sent.messages, &sent.raw_bytes, &sent.wire_bytes}) *count *= copies;
      all += sent;
      all += channels.peers.take_received();
    }
    return all;
  }

  void visit_state(StateVisitor& visitor) {
    for (auto& channels : channels_) {
      PrefixedVisitor prefixed(fmt::format("{}.{}", kName, channels.stage.name), visitor);
      channels.peers.visit_state(prefixed);
    }
  }

  std::map<std::string, uint64_t> weight_checksums() const {
    std::map<std::string, uint64_t> sums;
    for (const auto& channels : channels_) {
      uint64_t& sum = sums[channels.stage.name];
      for (const auto& parameter : channels.stage.parameters) {
        const at::Tensor dense = parameter.detach().to(at::kCPU).contiguous();
        sum = XXH3_64bits_withSeed(dense.data_ptr(), dense.nbytes(), sum);
      }
    }
    return sums;
  }

 private:
  static size_t index(int replica) { return static_cast<size_t>(replica); }

  std::vector<int> others() const {
    std::vector<int> all;
    for (int i = 0; i < place_.replicas; ++i) {
      if (i != place_.replica()) all.push_back(i);
    }
    return all;
  }

  /// Both ends give a connection the same number, and a replica's connections have different ones.
  size_t connection_to(int other) const { return index((place_.replica() + other) % place_.replicas); }

  Tag tag(int other, const StageChannels& channels) const {
    return {static_cast<uint32_t>(connection_to(other)), Direction::gradient,
            static_cast<uint32_t>(channels.stage.number)};
  }

  MessageContext context(const StageChannels& channels, uint64_t step) const {
    return {.seed = seed_, .step = step, .micro_batch = static_cast<uint32_t>(channels.stage.number)};
  }

  Buffer send(StageChannels& channels, uint64_t step, MessageMode mode, std::span<const at::Tensor> previous) {
    Sender& sender = channels.peers.sender();
    MessageContext place = context(channels, step);
    at::Tensor before;
    if (sender.needs_previous(place, mode)) {
      STRAIT_CHECK(!previous.empty(), "stage {} has no gradients at the weights before", channels.stage.name);
      before = joined(previous);
      place.previous = &before;
    }
    Buffer frame = sender.encode(joined_gradients(channels.stage.parameters), place, mode);
    for (const int other : others()) transport_->send(tag(other, channels), copy_of(frame));
    return frame;
  }

  void receive(StageChannels& channels, Buffer own, uint64_t step, MessageMode mode) {
    const auto frame = [&](int from) {
      if (from == place_.replica()) return std::move(own);
      return transport_->receive(tag(from, channels), channels.peers.receiver(from).frame_bound(channels.meta));
    };
    const at::Tensor sum = channels.peers.sum(frame, channels.meta, context(channels, step), mode);
    set_gradients(channels.stage.parameters, sum);
  }

  Group& group_;
  RankTopology place_;
  uint64_t seed_;
  std::vector<StageChannels> channels_;
  std::unique_ptr<Transport> transport_;
};

DataParallel::DataParallel() = default;

DataParallel::DataParallel(Group& group, const RankTopology& place, int stage_count, std::vector<Stage> stages,
                           const std::shared_ptr<const Link>& link, uint64_t seed) {
  if (place.replicas == 1) return;
  replicas_ = std::make_unique<Replicas>(group, place, stage_count, std::move(stages), link, seed);
}

DataParallel::~DataParallel() = default;

bool DataParallel::needs_previous(uint64_t step, MessageMode mode) const {
  return replicas_ && replicas_->needs_previous(step, mode);
}

void DataParallel::sum_gradients(uint64_t step, MessageMode mode, std::span<const at::Tensor> previous) {
  if (replicas_) replicas_->sum_gradients(step, mode, previous);
}

void DataParallel::wait_for_first() {
  if (replicas_) replicas_->wait_for_first();
}

std::optional<Traffic> DataParallel::take_traffic() {
  if (!replicas_) return {};
  return replicas_->take_traffic();
}

void DataParallel::visit_state(StateVisitor& visitor) {
  if (replicas_) replicas_->visit_state(visitor);
}

std::map<std::string, uint64_t> DataParallel::weight_checksums() const {
  return replicas_ ? replicas_->weight_checksums() : std::map<std::string, uint64_t>();
}

}  // namespace strait
