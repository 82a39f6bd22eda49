#include "strait/planning/codec_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace strait {
namespace {

constexpr double kLeastCosine = 0.85;  // of a codec that may be chosen
constexpr double kPower = 2;           // of one over the cosines
constexpr double kNoisePower = 0.25;   // of the messages' squares with their errors, over those without
constexpr double kWorthwhile = 0.995;  // of the time before: a change that gains less is none

using TrialsOf = std::vector<CodecTrial> BoundaryTrials::*;
using RungOf = size_t BoundaryRungs::*;

/// Of one direction: the logarithm of what its codecs make of the steps, by cosines and by noise.
double log_of_factor(std::span<const BoundaryTrials> boundaries, std::span<const BoundaryRungs> rungs,
                     TrialsOf trials, RungOf rung, const std::vector<std::optional<double>>& cosines) {
  constexpr double kGreatest = 1e6;  // of an error, which may be infinite
  const auto square = [&](const BoundaryTrials& boundary, size_t codec) {
    return std::pow(std::min((boundary.*trials)[codec].relative_error, kGreatest), 2);
  };
  const auto is_chosen = [&](const BoundaryTrials& boundary) {
    return (boundary.*trials).size() == cosines.size();
  };
  const auto chosen = static_cast<double>(std::ranges::count_if(boundaries, is_chosen));
  double sum = 0;
  for (size_t i = 0; i < boundaries.size(); ++i) {
    if (!is_chosen(boundaries[i])) continue;
    const size_t codec = rungs[i].*rung;
    if (std::isinf((boundaries[i].*trials)[codec].relative_error))
      return std::numeric_limits<double>::infinity();
    const double own = square(boundaries[i], codec);
    sum += kNoisePower * std::log1p(own) / chosen;
    const double cosine = cosines[codec].value_or(1);
    if (own == 0 || cosine == 1) continue;
    double all = 0;
    for (const auto& boundary : boundaries) all += is_chosen(boundary) ? square(boundary, codec) : 0;
    sum -= kPower * own / all * std::log(cosine < kLeastCosine ? 0 : cosine);
  }
  return sum;
}

MessageCost cost_of(const CodecTrial& trial) {
  return {trial.bytes, trial.encode_seconds, trial.decode_seconds};
}

/// Of a step with these codecs, by the predictor. The measurement has the times of the stages; its only
/// candidate becomes these codecs.
double seconds_of(const Predictor& predictor, Measurement& measurement,
                  std::span<const BoundaryTrials> boundaries, std::span<const BoundaryRungs> rungs,
                  std::span<const BoundaryLink> links) {
  CandidateCosts& costs = measurement.candidates.front();
  costs.activation.clear();
  costs.gradient.clear();
  for (size_t i = 0; i < rungs.size(); ++i) {
    costs.activation.push_back(cost_of(boundaries[i].activations[rungs[i].activations]));
    costs.gradient.push_back(cost_of(boundaries[i].gradients[rungs[i].gradients]));
  }
  return predictor.predict(measurement, {}, links).steps.front().seconds;
}

Measurement measurement_of(const std::vector<StageSeconds>& stages) {
  Measurement measurement;
  measurement.stages = stages;
  measurement.candidates.resize(1);
  return measurement;
}

/// For the steps that one without compression is worth.
double total(const FastestCodecs& codecs) { return codecs.step_seconds * codecs.step_factor; }

/// Looks for the codecs with the least time, from several beginnings.
class Search {
 public:
  Search(const Predictor& predictor, const std::vector<StageSeconds>& stages,
         std::span<const BoundaryTrials> boundaries, std::span<const BoundaryLink> links,
         const LadderCosines& cosines)
      : predictor_(predictor),
        measurement_(measurement_of(stages)),
        boundaries_(boundaries),
        links_(links),
        cosines_(cosines) {}

  FastestCodecs run() {
    size_t most = 1;
    for (const auto& [activations, gradients] : boundaries_)
      most = std::max({most, activations.size(), gradients.size()});
    FastestCodecs best = with(std::vector<BoundaryRungs>(boundaries_.size()));
    for (size_t rung = 0; rung < most; ++rung) {
      const FastestCodecs found = descend(with(uniform(rung)));
      if (is_better(found, best)) best = found;
    }
    return best;
  }

 private:
  static bool is_better(const FastestCodecs& codecs, const FastestCodecs& than) {
    return total(codecs) < kWorthwhile * total(than);
  }

  /// In one direction, and no stronger in the other.
  static bool is_milder(const BoundaryRungs& codecs, const BoundaryRungs& than) {
    return codecs != than && codecs.activations <= than.activations && codecs.gradients <= than.gradients;
  }

  std::vector<BoundaryRungs> uniform(size_t rung) const {
    std::vector<BoundaryRungs> rungs;
    for (const auto& [activations, gradients] : boundaries_) {
      rungs.push_back({std::min(rung, activations.size() - 1), std::min(rung, gradients.size() - 1)});
    }
    return rungs;
  }

  FastestCodecs with(std::vector<BoundaryRungs> rungs) {
    const double seconds = seconds_of(predictor_, measurement_, boundaries_, rungs, links_);
    const double factor = step_factor(boundaries_, rungs, cosines_);
    return {std::move(rungs), seconds, factor};
  }

  /// Changes one boundary at a time, in one direction or both, as long as that gains something.
  FastestCodecs descend(FastestCodecs best) {
    for (bool gains = true; gains;) {
      gains = false;
      for (size_t i = 0; i < boundaries_.size(); ++i) {
        for (const BoundaryRungs& rungs : choices_at(i, best.rungs[i])) {
          std::vector<BoundaryRungs> changed = best.rungs;
          changed[i] = rungs;
          FastestCodecs found = with(std::move(changed));
          if (!is_better(found, best) && !(is_milder(rungs, best.rungs[i]) && total(found) <= total(best)))
            continue;
          best = std::move(found);
          gains = true;
        }
      }
    }
    return best;
  }

  std::vector<BoundaryRungs> choices_at(size_t boundary, const BoundaryRungs& now) const {
    const auto& [activations, gradients] = boundaries_[boundary];
    std::vector<BoundaryRungs> choices;
    for (size_t rung = 0; rung < activations.size(); ++rung) choices.push_back({rung, now.gradients});
    for (size_t rung = 0; rung < gradients.size(); ++rung) choices.push_back({now.activations, rung});
    for (size_t rung = 0; rung < std::min(activations.size(), gradients.size()); ++rung)
      choices.push_back({rung, rung});
    return choices;
  }

  const Predictor& predictor_;
  Measurement measurement_;
  std::span<const BoundaryTrials> boundaries_;
  std::span<const BoundaryLink> links_;
  const LadderCosines& cosines_;
};

/// The codec at a place of the ladder, in one direction of all boundaries.
struct DirectedRung {
  Direction direction = Direction::activation;
  size_t rung = 0;

  bool operator==(const DirectedRung&) const = default;
};

/// Looks for codecs that are worth measuring.
class Weighing {
 public:
  Weighing(const Predictor& predictor, const std::vector<StageSeconds>& stages,
           std::span<const BoundaryTrials> boundaries, std::span<const BoundaryLink> links,
           const TrialTerms& terms)
      : predictor_(predictor), stages_(stages), boundaries_(boundaries), links_(links), terms_(terms) {}

  /// Leaves out the codec without which there is the least time, as long as that saves any, and in the end all
  /// that are not known if they do not repay the reference too.
  FastestCodecs run(const LadderCosines& cosines) const {
    Option best = with(cosines);
    while (auto better = best_without_one_of(best)) best = std::move(*better);
    if (best.unknown.empty()) return best.codecs;
    const Option known = with(known_of(cosines));
    const double reference = terms_.compared ? 0 : batches_seconds(terms_.reference, terms_.reference);
    if (known.seconds < best.seconds + reference) return known.codecs;
    best.codecs.trial_seconds = trial_seconds(best.unknown) + reference;
    return best.codecs;
  }

 private:
  /// The fastest codecs by these cosines.
  struct Option {
    LadderCosines cosines;
    FastestCodecs codecs;
    std::vector<DirectedRung> unknown;  ///< those of the codecs whose cosines are not known
    double seconds = 0;                 ///< of the batches ahead and of the trials, but for the reference
  };

  Option with(LadderCosines cosines) const {
    FastestCodecs codecs = fastest_codecs(predictor_, stages_, boundaries_, links_, cosines);
    std::vector<DirectedRung> unknown = unknown_in(codecs, cosines);
    const double seconds = total(codecs) * static_cast<double>(terms_.batches_ahead) + trial_seconds(unknown);
    return {std::move(cosines), std::move(codecs), std::move(unknown), seconds};
  }

  /// Without one of its codecs that are not known, with others in its place or none of these.
  std::optional<Option> best_without_one_of(const Option& option) const {
    std::optional<Option> best;
    for (const DirectedRung& codec : option.unknown) {
      LadderCosines others = option.cosines;
      others.of(codec.direction)[codec.rung] = 0;
      LadderCosines none = known_of(others);
      for (const auto& [direction, rung] : option.unknown) {
        if (others.of(direction)[rung] != 0) none.of(direction)[rung] = std::nullopt;
      }
      for (LadderCosines* cosines : {&others, &none}) {
        Option found = with(std::move(*cosines));
        if (found.seconds < (best ? *best : option).seconds) best = std::move(found);
      }
    }
    return best;
  }

  /// With these no codec is taken that is not known.
  static LadderCosines known_of(LadderCosines cosines) {
    for (auto* of_direction : {&cosines.activations, &cosines.gradients}) {
      for (auto& cosine : *of_direction) cosine = cosine.value_or(0);
    }
    return cosines;
  }

  std::vector<DirectedRung> unknown_in(const FastestCodecs& codecs, const LadderCosines& cosines) const {
    std::vector<DirectedRung> unknown;
    const auto add = [&](Direction direction, const std::vector<CodecTrial>& trials, size_t rung) {
      const auto& known = cosines.of(direction);
      const DirectedRung codec{direction, rung};
      if (trials.size() != known.size() || known[rung] || std::ranges::count(unknown, codec) > 0) return;
      unknown.push_back(codec);
    };
    for (size_t i = 0; i < codecs.rungs.size(); ++i) {
      add(Direction::activation, boundaries_[i].activations, codecs.rungs[i].activations);
      add(Direction::gradient, boundaries_[i].gradients, codecs.rungs[i].gradients);
    }
    return unknown;
  }

  double trial_seconds(const std::vector<DirectedRung>& codecs) const {
    double seconds = 0;
    for (const auto& [direction, rung] : codecs) {
      seconds += direction == Direction::activation ? batches_seconds(rung, terms_.reference)
                                                    : batches_seconds(terms_.reference, rung);
    }
    return seconds;
  }

  /// Of the batches of one trial.
  double batches_seconds(size_t activations, size_t gradients) const {
    Measurement measurement = measurement_of(stages_);
    std::vector<BoundaryRungs> rungs;
    for (const auto& trials : boundaries_) {
      rungs.push_back({std::min(activations, trials.activations.size() - 1),
                       std::min(gradients, trials.gradients.size() - 1)});
    }
    return seconds_of(predictor_, measurement, boundaries_, rungs, links_) *
           static_cast<double>(terms_.batches);
  }

  const Predictor& predictor_;
  const std::vector<StageSeconds>& stages_;
  std::span<const BoundaryTrials> boundaries_;
  std::span<const BoundaryLink> links_;
  TrialTerms terms_;
};

}  // namespace

double step_factor(std::span<const BoundaryTrials> boundaries, std::span<const BoundaryRungs> rungs,
                   const LadderCosines& cosines) {
  const double forward = log_of_factor(boundaries, rungs, &BoundaryTrials::activations,
                                       &BoundaryRungs::activations, cosines.activations);
  const double backward = log_of_factor(boundaries, rungs, &BoundaryTrials::gradients,
                                        &BoundaryRungs::gradients, cosines.gradients);
  return std::exp(forward + backward);
}

std::vector<BoundaryRungs> within_budget(std::span<const BoundaryTrials> boundaries, double budget) {
  const auto best = [&](const std::vector<CodecTrial>& trials) {
    const auto is_better = [&](const CodecTrial& one, const CodecTrial& than) {
      const bool fits = one.relative_error <= budget;
      if (fits != (than.relative_error <= budget)) return fits;
      return fits ? one.bytes < than.bytes : one.relative_error < than.relative_error;
    };
    return static_cast<size_t>(std::ranges::min_element(trials, is_better) - trials.begin());
  };
  std::vector<BoundaryRungs> rungs;
  for (const auto& [activations, gradients] : boundaries) rungs.push_back({best(activations), best(gradients)});
  return rungs;
}

FastestCodecs fastest_codecs(const Predictor& predictor, const std::vector<StageSeconds>& stages,
                             std::span<const BoundaryTrials> boundaries, std::span<const BoundaryLink> links,
                             const LadderCosines& cosines) {
  return Search(predictor, stages, boundaries, links, cosines).run();
}

FastestCodecs fastest_worth_measuring(const Predictor& predictor, const std::vector<StageSeconds>& stages,
                                      std::span<const BoundaryTrials> boundaries,
                                      std::span<const BoundaryLink> links, const LadderCosines& cosines,
                                      const TrialTerms& terms) {
  return Weighing(predictor, stages, boundaries, links, terms).run(cosines);
}

}  // namespace strait
