#include "strait/planning/measurement.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/full.h>
#include <torch/cuda.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/times.h"
#include "strait/boundary/boundary.h"
#include "strait/config/model_and_data.h"
#include "strait/pipeline/stage.h"
#include "strait/train/precision.h"
#include "strait/train/runtime.h"
#include "strait/train/task.h"

namespace strait {
namespace {

/// What a device has been asked for may not be done yet.
void wait_for(at::Device device) {
  if (device.is_cuda()) torch::cuda::synchronize(device.index());
}

double bytes_of(const std::vector<at::Tensor>& parameters) {
  double bytes = 0;
  for (const auto& parameter : parameters) bytes += static_cast<double>(parameter.nbytes());
  return bytes;
}

/// One micro-batch on its way through the stages and back.
class Pass {
 public:
  explicit Pass(const Config& config)
      : seed_(config.seed), device_(device_of(config.train.device)), model_(make_network(config)) {
    const auto ranges = cut_into_stages(model_, config.model.cuts);
    check_precision(config.train.precision, device_);
    model_.to(device_);
    model_.train(true);
    load_batch(config);
    for (const LayerRange& range : ranges) {
      const bool last = stages_.size() + 1 == ranges.size();
      Stage stage(forward_of(model_, range, config.train.precision, device_.type()),
                  last ? task_of(config.data).loss : LossFunction(), stages_.empty());
      stages_.push_back({.name = model_.layers[range.begin].name + ".." + model_.layers[range.end - 1].name,
                         .stage = std::move(stage),
                         .weight_bytes = bytes_of(model_.part(range).parameters())});
    }
  }
  Pass(const Pass&) = delete;  // the stages refer to the model in place
  Pass& operator=(const Pass&) = delete;

  void run() {
    crossing_.assign(1, {batch_.inputs});
    gradients_.assign(stages_.size(), at::full({}, 1.0, batch_.inputs.options().dtype(at::kFloat)));
    for (size_t i = 0; i < stages_.size(); ++i) {
      stages_[i].forward.add(timed([&] { forward(i); }));
    }
    for (size_t i = stages_.size(); i-- > 0;) {
      stages_[i].backward.add(timed([&] { backward(i); }));
    }
  }

  std::vector<StageSeconds> stages() const {
    std::vector<StageSeconds> stages;
    for (const auto& each : stages_) {
      stages.push_back({each.name, each.forward.median(), each.backward.median()});
    }
    return stages;
  }

  std::vector<double> weight_bytes() const {
    std::vector<double> bytes;
    for (const auto& each : stages_) bytes.push_back(each.weight_bytes);
    return bytes;
  }

  /// What crosses the boundary behind stage `i`.
  const at::Tensor& activation(size_t i) const { return crossing_[i + 1].front(); }
  const at::Tensor& gradient(size_t i) const { return gradients_[i]; }

  /// The channel over which the network's input crosses a cut too, where it does.
  std::optional<ChannelEndpoints> input_channel(const std::string& cut) const {
    if (model_.passed_below == 0) return std::nullopt;
    return std::optional<ChannelEndpoints>(
        std::in_place,
        ChannelSpec{.boundary_name = cut, .link = integer_links(model_.passed_below).activations});
  }
  const at::Tensor& input() const { return batch_.inputs; }

  MessageContext context(uint64_t step) const {
    return {.seed = seed_, .step = step, .ids = batch_.ids, .classes = batch_.classes};
  }

 private:
  struct MeasuredStage {
    std::string name;
    Stage stage;
    double weight_bytes = 0;
    Times forward = Times();
    Times backward = Times();
  };

  void load_batch(const Config& config) {
    const auto data = load_splits(config).train;
    const int64_t rows = micro_batches_of(config).rows;
    if (data->size() < rows) {
      throw InputError("data.train_limit: a micro-batch has {} samples, found {} in the training set", rows,
                       data->size());
    }
    auto ids = epoch_order(config.seed, 0, data->size());
    ids.resize(static_cast<size_t>(rows));
    batch_ = data->batch(ids, augmentation_key(config.seed, 0));
    batch_.classes = data->classes(ids);
    if (keeps_classes(config.compression, config.model.cuts)) expect_classes(*data);
    batch_.inputs = batch_.inputs.to(device_);
    batch_.targets = batch_.targets.to(device_);
  }

  template <class Work>
  double timed(const Work& work) const {
    wait_for(device_);
    return strait::timed([&] {
      work();
      wait_for(device_);
    });
  }

  void forward(size_t i) {
    Stage& stage = stages_[i].stage;
    if (stage.is_last()) {
      stage.forward_loss(0, crossing_[i], batch_.targets);
    } else {
      crossing_.push_back(stage.forward(0, crossing_[i]));
    }
  }

  void backward(size_t i) {
    const TensorList returned = stages_[i].stage.backward(0, {gradients_[i]});
    if (i > 0) gradients_[i - 1] = returned.front();
  }

  uint64_t seed_;
  at::Device device_;
  Model model_;
  std::vector<MeasuredStage> stages_;
  Batch batch_;
  std::vector<TensorList> crossing_;   ///< the inputs of each stage
  std::vector<at::Tensor> gradients_;  ///< of the output of each stage
};

/// Costs of equal messages, which are measured one by one.
class MessageCosts {
 public:
  void add(const Traffic& message) {
    last_ = message;
    encode_.add(message.encode_seconds);
    decode_.add(message.decode_seconds);
  }

  MessageCost median() const {
    return {static_cast<double>(last_.wire_bytes), encode_.median(), decode_.median()};
  }
  const Traffic& last() const { return last_; }

 private:
  Traffic last_;
  Times encode_;
  Times decode_;
};

CandidateCosts measure_candidate(const Pass& pass, const Candidate& candidate,
                                 const std::vector<std::string>& cuts) {
  constexpr double kSeconds = 0.2;  // of a boundary
  CandidateCosts costs{.candidate = candidate, .activation = {}, .gradient = {}};
  Traffic all;
  for (size_t i = 0; i < cuts.size(); ++i) {
    BoundaryEndpoints boundary(cuts[i], static_cast<uint16_t>(i), links_of(candidate.compression, cuts[i]),
                               candidate.compression.diagnostics, BoundaryEndpoints::Local{});
    std::optional<ChannelEndpoints> input = pass.input_channel(cuts[i]);
    MessageCosts forward;
    MessageCosts backward;
    uint64_t step = 0;
    repeat({.seconds = kSeconds}, [&] {
      const MessageContext context = pass.context(step++);
      boundary.activations.cross(pass.activation(i), context);
      boundary.gradients.cross(pass.gradient(i), context);
      Traffic message = boundary.activations.take_traffic();
      if (input) {
        input->cross(pass.input(), context);
        message += input->take_traffic();
      }
      forward.add(message);
      backward.add(boundary.gradients.take_traffic());
    });
    costs.activation.push_back(forward.median());
    costs.gradient.push_back(backward.median());
    all += forward.last();
    all += backward.last();
  }
  costs.ratio = all.ratio();
  return costs;
}

std::string name_of(const LinkOptions& link) {
  return link.feedback == kNoFeedback ? link.codec : link.codec + "+" + link.feedback;
}

std::string name_of(const BoundaryScheme& scheme) {
  const std::string forward = name_of(scheme.activations);
  const std::string backward = name_of(scheme.gradients);
  return forward == backward ? forward : forward + "/" + backward;
}

Candidate candidate_of(const CompressionOptions& compression) {
  std::string name = name_of({compression.activations, compression.gradients});
  for (const auto& own : compression.boundaries) {
    name += fmt::format(" {}:{}", own.name, name_of(compression.at(own.name)));
  }
  if (compression.reuse_indices) name += " reused";
  return {.name = std::move(name), .compression = compression};
}

/// The configuration's own way, with the strongest codec where one is chosen in training, and without a file
/// and figures of its own, which would be in the way of measuring.
Candidate own_candidate(const Config& config) {
  Candidate own = candidate_of(with_strongest_codecs(config.compression));
  own.compression.store.place = "memory";
  own.compression.diagnostics = 0;
  own.own = true;
  return own;
}

std::vector<MessageCost> mean_for(const std::vector<MessageCost>& messages, size_t boundaries) {
  MessageCost mean;
  const auto count = static_cast<double>(messages.size());
  for (const auto& message : messages) {
    mean.bytes += message.bytes / count;
    mean.encode_seconds += message.encode_seconds / count;
    mean.decode_seconds += message.decode_seconds / count;
  }
  return std::vector<MessageCost>(boundaries, mean);
}

}  // namespace

CandidateCosts& Measurement::own() {
  const auto found =
      std::ranges::find_if(candidates, [](const CandidateCosts& costs) { return costs.candidate.own; });
  STRAIT_CHECK(found != candidates.end(), "the configuration's own codec is not among the candidates");
  return *found;
}

std::vector<Candidate> candidates_for(const Config& config) {
  const Candidate own = own_candidate(config);
  std::vector<Candidate> candidates;
  for (const auto& scheme : scheme_list()) {
    CompressionOptions compression;
    compression.activations.codec = scheme.activations;
    compression.gradients.codec = scheme.gradients;
    candidates.push_back(candidate_of(compression));
  }
  const auto same = std::ranges::find(candidates, own.name, &Candidate::name);
  if (same == candidates.end()) {
    candidates.push_back(own);
  } else {
    *same = own;
  }
  return candidates;
}

MicroBatches micro_batches_of(const Config& config) {
  const int64_t batch = config.data.batch_size;
  const int64_t rows = (batch + config.pipeline.micro_batches - 1) / config.pipeline.micro_batches;
  return {static_cast<int>((batch + rows - 1) / rows), rows};
}

Measurement measure(const Config& config, std::span<const Candidate> candidates) {
  constexpr double kSeconds = 2;
  Pass pass(config);
  repeat({.seconds = kSeconds}, [&] { pass.run(); });
  Measurement measurement{.stages = pass.stages(), .candidates = {}, .weight_bytes = pass.weight_bytes()};
  for (const auto& candidate : candidates) {
    measurement.candidates.push_back(measure_candidate(pass, candidate, config.model.cuts));
  }
  return measurement;
}

Measurement stretched(const Measurement& measurement, int stages) {
  const auto boundaries = static_cast<size_t>(stages) - 1;
  if (measurement.stages.size() == 1 && boundaries > 0) {
    throw InputError("--stages: expected model.cuts with at least one cut, to take the size of messages from");
  }
  StageSeconds mean{.name = "each"};
  for (const auto& stage : measurement.stages) {
    mean.forward += stage.forward / stages;
    mean.backward += stage.backward / stages;
  }
  Measurement result{.stages = std::vector<StageSeconds>(static_cast<size_t>(stages), mean),
                     .candidates = measurement.candidates,
                     .weight_bytes = {}};
  const double bytes = std::accumulate(measurement.weight_bytes.begin(), measurement.weight_bytes.end(), 0.0);
  result.weight_bytes.assign(static_cast<size_t>(stages), bytes / stages);
  for (auto& costs : result.candidates) {
    costs.activation = mean_for(costs.activation, boundaries);
    costs.gradient = mean_for(costs.gradient, boundaries);
  }
  return result;
}

}  // namespace strait
