#include "strait/train/recorder.h"

namespace strait {
namespace {

BoundaryTraffic take_traffic(BoundaryEndpoints& boundary) {
  BoundaryTraffic traffic;
  traffic.name = boundary.name;
  traffic.activations = boundary.activations.take_traffic();
  traffic.gradients = boundary.gradients.take_traffic();
  if (const auto& sender = boundary.activations.sender) traffic.activation_diagnostics = sender->diagnostics();
  if (const auto& sender = boundary.gradients.sender) traffic.gradient_diagnostics = sender->diagnostics();
  return traffic;
}

}  // namespace

void Recorder::take_in(TrainingState& state) {
  std::vector<BoundaryTraffic> all;
  for (auto& boundary : executor_.boundaries()) all.push_back(take_traffic(boundary));
  add_traffic(state.traffic, all);
  if (auto traffic = data_parallel_.take_traffic()) {
    add_traffic(state.traffic, {{.name = DataParallel::kName, .activations = {}, .gradients = *traffic}});
  }
  const auto times = executor_.take_times();
  if (placement_.replica() != 0) return;
  for (const auto& [number, stage] : times) {
    add_times(state.stages, {{{number, placement_.stage_name(static_cast<size_t>(number))}, stage}});
  }
}

RankStatistics Recorder::statistics(TrainingState& state) {
  take_in(state);
  RankStatistics mine{.train = state.sums,
                      .test = {},
                      .boundaries = state.traffic,
                      .stages = state.stages,
                      .feedback_state = {},
                      .weights = data_parallel_.weight_checksums(),
                      .seconds = state.seconds,
                      .data_wait_seconds = state.data_wait_seconds,
                      .links = links_.take()};
  if (!placement_.is_alone()) {
    mine.feedback_state = feedback_state_of(executor_.boundaries(), placement_.replica());
  }
  for (auto& boundary : executor_.boundaries()) {
    for (ChannelEndpoints* channel : {&boundary.activations, &boundary.gradients}) {
      if (channel->sender) channel->sender->reset_diagnostics();
    }
  }
  return mine;
}

EpochMetrics Recorder::epoch_metrics(const RankStatistics& all, const TrainingState& state, int64_t steps,
                                     double lr) const {
  EpochMetrics metrics{.epoch = state.epoch,
                       .steps = steps,
                       .train = score_of(all.train, options_.task),
                       .test = {},
                       .lr = lr,
                       .seconds = all.seconds,
                       .samples_per_second = static_cast<double>(all.train.rows) / all.seconds,
                       .tokens_per_second = {},
                       .evaluation_seconds = 0,
                       .data_wait_seconds = all.data_wait_seconds,
                       .bubble_share = bubble_share(all, placement_.pipeline().size()),
                       .boundaries = all.boundaries,
                       .stages = seconds_per_micro_batch(all.stages),
                       .evaluations = state.evaluations,
                       .links = all.links};
  if (!all.test.empty()) metrics.test = evaluation_of(all);
  if (options_.task.throughput == Throughput::tokens) {
    metrics.tokens_per_second = static_cast<double>(all.train.count) / all.seconds;
  }
  return metrics;
}

Evaluation Recorder::evaluation_of(const RankStatistics& all) const {
  return strait::evaluation_of(all.test, evaluation_mode(options_.compression.evaluation), options_.task);
}

}  // namespace strait
