#include "strait/planning/codec_chooser.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/json.h"
#include "strait/data/batch_parts.h"
#include "strait/planning/codec_choice.h"
#include "strait/planning/network_simulation.h"
#include "strait/run/metrics_json.h"
#include "strait/train/placement.h"
#include "strait/transport/measure.h"

namespace strait {
namespace {

using nlohmann::json;

/// Seconds for each way of a link: all of them take a little of the time since the last choice.
double measuring_seconds(double since_last, size_t links) {
  constexpr double kShare = 0.01;
  constexpr double kLeast = 0.1;
  constexpr double kMost = 0.5;
  return std::clamp(kShare * since_last / static_cast<double>(2 * links), kLeast, kMost);
}

json to_json(const ChoiceFacts& facts) {
  json channels = json::array();
  for (const auto& channel : facts.channels) {
    json trials = json::array();
    for (const auto& [bytes, encode, decode, error, cosine] : channel.trials)
      trials.push_back({bytes, encode, decode, error, cosine});
    channels.push_back({{"boundary", channel.boundary},
                        {"direction", to_string(channel.direction)},
                        {"rows", channel.rows},
                        {"trials", std::move(trials)}});
  }
  return {{"channels", std::move(channels)}, {"stages", strait::to_json(facts.stages)}};
}

/// JSON has no infinite error.
double error_in(const json& error) {
  return error.is_null() ? std::numeric_limits<double>::infinity() : error.get<double>();
}

/// Adds the trials of one channel to those of the same channel of other replicas, as if of a message of `rows`:
/// the greatest of each counts, and the least cosine. Integers beside a boundary's messages are more bytes of
/// each of these.
void add_trials(std::vector<CodecTrial>& all, const json& channel, double rows, bool is_beside) {
  const double scale = rows / channel.at("rows").get<double>();
  const json& trials = channel.at("trials");
  if (!is_beside && all.size() < trials.size()) all.resize(trials.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const json& trial = is_beside ? trials.at(0) : trials.at(i);
    const double bytes = scale * trial.at(0).get<double>();
    const double encode = scale * trial.at(1).get<double>();
    const double decode = scale * trial.at(2).get<double>();
    if (is_beside) {
      all[i].bytes += bytes;
      all[i].encode_seconds += encode;
      all[i].decode_seconds += decode;
      continue;
    }
    all[i].bytes = std::max(all[i].bytes, bytes);
    all[i].encode_seconds = std::max(all[i].encode_seconds, encode);
    all[i].decode_seconds = std::max(all[i].decode_seconds, decode);
    all[i].relative_error = std::max(all[i].relative_error, error_in(trial.at(3)));
    all[i].cosine = std::min(all[i].cosine, trial.at(4).get<double>());
  }
}

ChosenLink chosen_link(const LinkRate& link) {
  ChosenLink chosen{.bytes_per_second = {}, .latency_seconds = link.latency_seconds};
  if (std::isfinite(link.bytes_per_second)) chosen.bytes_per_second = link.bytes_per_second;
  return chosen;
}

/// That of compression.auto.network.
std::optional<NetworkOptions> network_of(const Config& config) {
  const auto& name = config.compression.automatic.network;
  const auto found = std::ranges::find(config.networks, name, &NetworkOptions::name);
  if (name.empty() || found == config.networks.end()) return std::nullopt;
  return *found;
}

/// What all links are by the configuration of so many processes, if it says so or they do not matter.
std::optional<BoundaryLink> known_links(const Config& config, int processes) {
  const auto same_both_ways = [](const LinkRate& link) { return BoundaryLink{link, link}; };
  if (config.compression.automatic.budget > 0) return BoundaryLink{};
  if (const auto network = network_of(config)) return same_both_ways(link_of(*network));
  const std::string& emulated = config.pipeline.link;
  if (!emulated.empty()) return same_both_ways(parse_link_rate(emulated, "pipeline.link"));
  if (processes == 1) return BoundaryLink{};
  return std::nullopt;
}

/// What all processes know together.
struct Situation {
  std::vector<StageSeconds> stages;    ///< over the network that is chosen for
  std::vector<BoundaryTrials> trials;  ///< one a boundary
  std::vector<BoundaryLink> links;     ///< likewise
};

/// As one of its replicas sees it.
Config of_one_replica(Config config) {
  config.data.batch_size = part_of_batch(config.data.batch_size, 0, config.pipeline.replicas).rows;
  config.pipeline.replicas = 1;
  return config;
}

/// Decides for runs of a configuration.
class Chooser {
 public:
  explicit Chooser(const Config& config)
      : config_(of_one_replica(config)),
        replicas_(config.pipeline.replicas),
        predictor_(config_, static_cast<int>(config_.model.cuts.size()) + 1, CodecPlace::own_threads),
        network_(network_of(config_)) {}

  CodecChoice choose(const ChoiceFacts& mine, Group& group) {
    const std::vector<BoundaryLink> links = links_of(mine.since_last, group);
    const auto texts = group.gather(to_json(mine).dump());
    std::string decided;
    if (group.rank() == 0) decided = strait::to_json(std::vector{decide(situation_of(texts, links))}).dump();
    const JsonText known(group.gather(decided).front(), "the choice of codecs");
    return choices_in(known.root()).front();
  }

 private:
  bool has_budget() const { return config_.compression.automatic.budget > 0; }
  size_t boundaries() const { return config_.model.cuts.size(); }
  const std::vector<std::string>& ladder() const { return config_.compression.automatic.ladder; }

  /// One a boundary; only the first rank's count. That rank also says whether they are measured, since others
  /// may have other keys.
  std::vector<BoundaryLink> links_of(double since_last, Group& group) const {
    constexpr const char* kMeasured = "measured";
    const auto known = known_links(config_, group.size());
    const auto said = group.gather(known ? "" : kMeasured);
    if (said.front() == kMeasured) return measured_links(since_last, group);
    return std::vector<BoundaryLink>(boundaries(), known.value_or(BoundaryLink{}));
  }

  /// Measures one after the other, so that none disturbs another; of several replicas the slowest counts.
  std::vector<BoundaryLink> measured_links(double since_last, Group& group) const {
    const double seconds = measuring_seconds(since_last, boundaries());
    const int ranks = group.size() / replicas_;
    std::vector<BoundaryLink> links(boundaries());
    for (int replica = 0; replica < replicas_; ++replica) {
      for (size_t i = 0; i < boundaries(); ++i) {
        const int before = replica * ranks + static_cast<int>(i) % ranks;
        const int behind = replica * ranks + static_cast<int>(i + 1) % ranks;
        if (before == behind) continue;
        json mine;
        if (group.rank() == before || group.rank() == behind) {
          const LinkSpeed speed = measure_link(group, group.rank() == before ? behind : before, seconds);
          mine = {speed.up, speed.down, speed.latency_seconds};
        }
        const json told = parse_json<WireError>(group.gather(mine.dump())[static_cast<size_t>(before)],
                                                "the speed of a link");
        const double latency = told.at(2).get<double>();
        const LinkRate up{told.at(0).get<double>(), latency};
        const LinkRate down{told.at(1).get<double>(), latency};
        slow_down(links[i].activations, before < behind ? up : down);
        slow_down(links[i].gradients, before < behind ? down : up);
      }
    }
    return links;
  }

  static void slow_down(LinkRate& link, const LinkRate& measured) {
    link.bytes_per_second = std::min(link.bytes_per_second, measured.bytes_per_second);
    link.latency_seconds = std::max(link.latency_seconds, measured.latency_seconds);
  }

  Situation situation_of(const std::vector<std::string>& texts, std::vector<BoundaryLink> links) const {
    std::vector<BoundaryTrials> trials(boundaries());
    TimesOfStages times;
    const auto rows = static_cast<double>(micro_batches_of(config_).rows);
    for (const bool beside : {false, true}) {  // what is beside a boundary's messages needs these
      for (const auto& text : texts) {
        const json facts = parse_json<WireError>(text, "what a rank knows of its codecs");
        if (!beside) add_times(times, stage_times_of(facts.at("stages")));
        for (const auto& channel : facts.at("channels")) add_channel(trials, channel, rows, beside);
      }
    }
    auto stages = seconds_per_micro_batch(times);
    if (network_) stages = stages_on(std::move(stages), *network_);
    return {std::move(stages), std::move(trials), std::move(links)};
  }

  CodecChoice decide(const Situation& situation) const {
    const auto& [stages, trials, links] = situation;
    CodecChoice choice;
    std::vector<BoundaryRungs> rungs;
    if (has_budget()) {
      rungs = within_budget(trials, config_.compression.automatic.budget);
    } else {
      FastestCodecs found = fastest_codecs(predictor_, stages, trials, links);
      rungs = std::move(found.rungs);
      choice.step_seconds = found.step_seconds;
      choice.step_factor = found.step_factor;
      choice.watches_gradients = is_worth_watching(predictor_, stages, trials, links);
    }
    for (size_t i = 0; i < boundaries(); ++i)
      choice.boundaries.push_back(chosen(i, trials[i], rungs[i], links[i]));
    return choice;
  }

  void add_channel(std::vector<BoundaryTrials>& trials, const json& channel, double rows, bool beside) const {
    const bool forward = channel.at("direction") == to_string(Direction::activation);
    for (size_t i = 0; i < boundaries(); ++i) {
      const std::string& cut = config_.model.cuts[i];
      if (channel.at("boundary") != (beside ? input_boundary(cut) : cut)) continue;
      add_trials(forward ? trials[i].activations : trials[i].gradients, channel, rows, beside);
    }
  }

  ChosenCodecs chosen(size_t boundary, const BoundaryTrials& trials, const BoundaryRungs& rungs,
                      const BoundaryLink& link) const {
    const auto [activations, gradients] = config_.compression.at(config_.model.cuts[boundary]);
    const auto codec = [&](const LinkOptions& asked, const std::vector<CodecTrial>& tried, size_t rung,
                           const LinkRate& rate) -> ChosenCodec {
      const bool is_chosen = asked.codec == kAutoCodec;
      return {.codec = is_chosen ? ladder().at(rung) : asked.codec,
              .relative_error = tried.at(rung).relative_error,
              .link = chosen_link(rate)};
    };
    ChosenCodecs chosen{config_.model.cuts[boundary],
                        codec(activations, trials.activations, rungs.activations, link.activations),
                        codec(gradients, trials.gradients, rungs.gradients, link.gradients)};
    if (gradients.codec == kAutoCodec && !has_budget()) {
      for (size_t i = 0; i < ladder().size(); ++i)
        chosen.gradients.cosines[ladder()[i]] = trials.gradients.at(i).cosine;
    }
    return chosen;
  }

  Config config_;
  int replicas_;
  Predictor predictor_;
  std::optional<NetworkOptions> network_;
};

}  // namespace

ChooseCodecs codec_chooser(const Config& config) {
  return [chooser = std::make_shared<Chooser>(config)](const ChoiceFacts& mine, Group& group) {
    return chooser->choose(mine, group);
  };
}

bool links_are_no_limit(const Config& config, int processes) {
  const auto known = known_links(config, processes);
  return known && std::isinf(known->activations.bytes_per_second);
}

}  // namespace strait
