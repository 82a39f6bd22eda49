#include "strait/pipeline/simulate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <optional>
#include <queue>
#include <string>
#include <utility>

#include "strait/base/error.h"
#include "strait/pipeline/validate.h"

namespace strait {
namespace {

/// One direction of one boundary. A validated plan sends and receives micro-batch `i` as message `i`.
struct Channel {
  MessageCost cost;
  LinkRate link;
  bool is_local = false;               ///< both stages are on one rank
  std::vector<Moment> arrivals = {};   ///< of the messages sent so far
  std::optional<size_t> waiting = {};  ///< the receiver, when the next message is not sent yet
};

/// A rank, and when each of its parts is done with what it has been given.
struct Rank {
  size_t position = 0;  ///< of the next action
  Moment start;         ///< of the next action, when it is in the queue
  Moment clock;         ///< of the last action
  Moment encoder;
  Moment decoder;
  Moment wire;
  RankBusy busy;
};

/// Of every stage, the most micro-batches that are between their forward and their backward at one time.
/// Without backward passes a micro-batch is forgotten at once.
std::vector<int> peak_live(const Plan& plan, const std::vector<Step>& steps) {
  const bool keeps = passes_of(plan) == Passes::forward_backward;
  std::vector<int> live(static_cast<size_t>(plan.stages));
  std::vector<int> peak(live.size());
  for (const Step& step : steps) {
    const auto stage = static_cast<size_t>(step.action.stage);
    if (step.action.op == Op::forward) peak[stage] = std::max(peak[stage], ++live[stage]);
    if (step.action.op == (keeps ? Op::backward : Op::forward)) --live[stage];
  }
  return peak;
}

class Simulator {
 public:
  Simulator(const Plan& plan, const CostModel& costs) : plan_(plan), costs_(costs), ranks_(plan.ranks.size()) {
    for (size_t boundary = 0; boundary + 1 < static_cast<size_t>(plan.stages); ++boundary) {
      const bool is_local = plan.rank_of_stage[boundary] == plan.rank_of_stage[boundary + 1];
      const BoundaryLink link =
          costs.boundary_links.empty() ? BoundaryLink{costs.link, costs.link} : costs.boundary_links[boundary];
      channels_.push_back({costs.activation[boundary], link.activations, is_local});
      channels_.push_back({costs.gradient[boundary], link.gradients, is_local});
    }
  }

  Simulation run() {
    size_t actions = 0;
    for (const auto& rank : plan_.ranks) actions += rank.size();
    result_.steps.reserve(actions);
    for (size_t rank = 0; rank < ranks_.size(); ++rank) await(rank);
    while (!ready_.empty()) {
      const size_t rank = ready_.top().second;
      ready_.pop();
      perform(rank);
      await(rank);
    }
    check_finished();
    sum_up();
    return std::move(result_);
  }

 private:
  Channel& channel_of(const Action& action) {
    return channels_[2 * static_cast<size_t>(boundary_of(action)) +
                     static_cast<size_t>(direction_of(action.op))];
  }

  /// Puts the rank's next action into the queue, or the rank on the waiting list of a message.
  void await(size_t index) {
    Rank& rank = ranks_[index];
    const auto& actions = plan_.ranks[index];
    if (rank.position == actions.size()) return;
    const Action& action = actions[rank.position];
    rank.start = rank.clock;
    if (is_receive(action.op)) {
      Channel& channel = channel_of(action);
      const auto message = static_cast<size_t>(action.micro_batch);
      if (message >= channel.arrivals.size()) {
        channel.waiting = index;
        return;
      }
      rank.start = later(rank.clock, received(rank, channel, channel.arrivals[message]));
    }
    ready_.emplace(rank.start.time, index);
  }

  void perform(size_t index) {
    Rank& rank = ranks_[index];
    const Action& action = plan_.ranks[index][rank.position++];
    rank.clock = rank.start;
    double end = rank.start.time;
    if (action.op == Op::forward || action.op == Op::backward) {
      compute(action, rank);
      end = rank.clock.time;
    } else if (is_send(action.op)) {
      end = send(channel_of(action), rank);
    } else if (!has_codec_threads()) {
      work(Work::codec, channel_of(action).cost.decode_seconds, rank.clock, rank.busy.decode);
      end = rank.clock.time;
    }
    result_.steps.push_back({action, static_cast<int>(index), rank.start.time, end});
  }

  bool has_codec_threads() const { return costs_.codec_place == CodecPlace::own_threads; }

  /// Lets a part of a rank work from `at`, which becomes the end.
  void work(Work what, double seconds, Moment& at, double& busy) {
    at = log_.perform(what, at, seconds);
    busy += seconds;
  }

  void compute(const Action& action, Rank& rank) {
    const auto stage = static_cast<size_t>(action.stage);
    work(Work::compute, action.op == Op::forward ? costs_.forward[stage] : costs_.backward[stage], rank.clock,
         rank.busy.compute);
  }

  /// When the message arrives.
  double send(Channel& channel, Rank& rank) {
    rank.encoder = has_codec_threads() ? later(rank.encoder, rank.clock) : rank.clock;
    work(Work::codec, channel.cost.encode_seconds, rank.encoder, rank.busy.encode);
    if (!has_codec_threads()) rank.clock = rank.encoder;
    Moment arrival = rank.encoder;
    if (!channel.is_local) {
      rank.wire = later(rank.wire, rank.encoder);
      work(Work::wire, channel.cost.bytes / channel.link.bytes_per_second, rank.wire, rank.busy.wire);
      arrival = log_.perform(Work::latency, rank.wire, channel.link.latency_seconds);
    }
    channel.arrivals.push_back(arrival);
    if (channel.waiting) await(*std::exchange(channel.waiting, std::nullopt));
    return arrival.time;
  }

  /// When the message that the rank waits for is ready for its computing thread.
  Moment received(Rank& rank, const Channel& channel, const Moment& arrival) {
    if (!has_codec_threads()) return arrival;
    rank.decoder = later(rank.decoder, arrival);
    work(Work::codec, channel.cost.decode_seconds, rank.decoder, rank.busy.decode);
    return rank.decoder;
  }

  void check_finished() const {
    std::string waits;
    for (size_t index = 0; index < ranks_.size(); ++index) {
      const auto& actions = plan_.ranks[index];
      const size_t position = ranks_[index].position;
      if (position == actions.size()) continue;
      waits += fmt::format("{}rank {} waits at position {} for {}", waits.empty() ? "" : ", ", index, position,
                           to_text(actions[position]));
    }
    if (!waits.empty()) throw InputError("plan runs into a deadlock: {}", waits);
  }

  void sum_up() {
    Moment end;
    double busiest = 0;
    for (const Rank& rank : ranks_) {
      end = later(end, rank.clock);
      busiest = std::max(busiest, rank.busy.compute);
    }
    result_.makespan = end.time;
    result_.shares = log_.shares_until(end, busiest);
    result_.peak_live = peak_live(plan_, result_.steps);
    for (const Rank& rank : ranks_) {
      result_.busy.push_back(rank.busy);
      result_.bubble_share.push_back(end.time > 0 ? 1 - rank.busy.compute / end.time : 0);
    }
  }

  const Plan& plan_;
  const CostModel& costs_;
  std::vector<Rank> ranks_;
  std::vector<Channel> channels_;  ///< of each boundary, activations and then gradients
  /// Time and rank of the next action of every rank that is not waiting; the earliest on top.
  std::priority_queue<std::pair<double, size_t>, std::vector<std::pair<double, size_t>>, std::greater<>> ready_;
  WorkLog log_;
  Simulation result_;
};

void check_count(const char* name, size_t found, size_t expected) {
  if (found != expected)
    throw InputError("cost model has {} entries for {}, expected {}", found, name, expected);
}

void check_numbers(const char* name, std::initializer_list<double> values) {
  if (!std::ranges::all_of(values, [](double value) { return std::isfinite(value) && value >= 0; })) {
    throw InputError("cost model has a negative or infinite entry for {}", name);
  }
}

void check_link(const LinkRate& link) {
  check_numbers("latency", {link.latency_seconds});
  if (!(link.bytes_per_second > 0)) {
    throw InputError("cost model has a link of {} bytes per second", link.bytes_per_second);
  }
}

void check_costs(const Plan& plan, const CostModel& costs) {
  const auto stages = static_cast<size_t>(plan.stages);
  for (const auto& [name, seconds] : {std::pair{"forward", &costs.forward}, {"backward", &costs.backward}}) {
    check_count(name, seconds->size(), stages);
    for (const double value : *seconds) check_numbers(name, {value});
  }
  for (const auto& [name, messages] :
       {std::pair{"activation", &costs.activation}, {"gradient", &costs.gradient}}) {
    check_count(name, messages->size(), stages - 1);
    for (const auto& message : *messages) {
      check_numbers(name, {message.bytes, message.encode_seconds, message.decode_seconds});
    }
  }
  check_link(costs.link);
  if (costs.boundary_links.empty()) return;
  check_count("boundary_links", costs.boundary_links.size(), stages - 1);
  for (const auto& [activations, gradients] : costs.boundary_links) {
    check_link(activations);
    check_link(gradients);
  }
}

}  // namespace

CostModel CostModel::uniform(int stages, double forward, double backward, const MessageCost& message) {
  STRAIT_CHECK(stages >= 1, "a cost model for {} stages", stages);
  const auto count = static_cast<size_t>(stages);
  return {.forward = std::vector<double>(count, forward),
          .backward = std::vector<double>(count, backward),
          .activation = std::vector<MessageCost>(count - 1, message),
          .gradient = std::vector<MessageCost>(count - 1, message)};
}

Simulation simulate(const Plan& plan, const CostModel& costs) {
  validate(plan, passes_of(plan));
  return simulate_valid(plan, costs);
}

Simulation simulate_valid(const Plan& plan, const CostModel& costs) {
  check_costs(plan, costs);
  return Simulator(plan, costs).run();
}

Simulation simulate(const Plan& plan) {
  return simulate(plan, CostModel::uniform(std::clamp(plan.stages, 1, kMaxStages), 1, 2));
}

}  // namespace strait
