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

/// What a codec has in one direction of the boundaries that are chosen.
struct CodecPart {
  bool is_used = false;
  double share = 0;   ///< in the logarithm of its cosine: that of the boundaries which have it
  double square = 0;  ///< of its errors there
};

/// Whether the codec of that direction is chosen, from a ladder of that size.
bool is_chosen(const BoundaryTrials& boundary, TrialsOf trials, size_t ladder) {
  return (boundary.*trials).size() == ladder;
}

double square_of_error(const BoundaryTrials& boundary, TrialsOf trials, size_t codec) {
  constexpr double kGreatest = 1e6;  // of an error, which may be infinite
  return std::pow(std::min((boundary.*trials)[codec].relative_error, kGreatest), 2);
}

/// Of each codec of the ladder.
std::vector<CodecPart> parts_of(std::span<const BoundaryTrials> boundaries,
                                std::span<const BoundaryRungs> rungs, TrialsOf trials, RungOf rung,
                                size_t ladder) {
  std::vector<CodecPart> parts(ladder);
  for (size_t i = 0; i < boundaries.size(); ++i) {
    if (!is_chosen(boundaries[i], trials, ladder)) continue;
    const size_t codec = rungs[i].*rung;
    CodecPart& part = parts[codec];
    part.is_used = true;
    const double own = square_of_error(boundaries[i], trials, codec);
    if (own == 0) continue;
    double all = 0;
    for (const auto& boundary : boundaries)
      all += is_chosen(boundary, trials, ladder) ? square_of_error(boundary, trials, codec) : 0;
    part.share += own / all;
    part.square += own;
  }
  return parts;
}

/// Of one direction: the logarithm of what its codecs make of the steps, by cosines and by noise.
double log_of_factor(std::span<const BoundaryTrials> boundaries, std::span<const BoundaryRungs> rungs,
                     TrialsOf trials, RungOf rung, const std::vector<std::optional<double>>& cosines) {
  double noise = 0;
  size_t chosen = 0;
  for (size_t i = 0; i < boundaries.size(); ++i) {
    if (!is_chosen(boundaries[i], trials, cosines.size())) continue;
    const size_t codec = rungs[i].*rung;
    if (std::isinf((boundaries[i].*trials)[codec].relative_error))
      return std::numeric_limits<double>::infinity();
    noise += std::log1p(square_of_error(boundaries[i], trials, codec));
    ++chosen;
  }
  if (chosen == 0) return 0;
  double sum = kNoisePower * noise / static_cast<double>(chosen);
  const auto parts = parts_of(boundaries, rungs, trials, rung, cosines.size());
  for (size_t codec = 0; codec < parts.size(); ++codec) {
    const double cosine = cosines[codec].value_or(1);
    if (parts[codec].share == 0 || cosine == 1) continue;
    sum -= kPower * parts[codec].share * std::log(cosine < kLeastCosine ? 0 : cosine);
  }
  return sum;
}

/// Of a choice: a codec of the ladder in one direction, and its cosine.
struct DirectedPart {
  CodecPart part;
  std::optional<double>* cosine;
};

std::vector<DirectedPart> used_parts(std::span<const BoundaryTrials> boundaries,
                                     std::span<const BoundaryRungs> rungs, LadderCosines& cosines) {
  std::vector<DirectedPart> used;
  const auto add = [&](TrialsOf trials, RungOf rung, std::vector<std::optional<double>>& of_direction) {
    const auto parts = parts_of(boundaries, rungs, trials, rung, of_direction.size());
    for (size_t codec = 0; codec < parts.size(); ++codec)
      if (parts[codec].is_used) used.push_back({parts[codec], &of_direction[codec]});
  };
  add(&BoundaryTrials::activations, &BoundaryRungs::activations, cosines.activations);
  add(&BoundaryTrials::gradients, &BoundaryRungs::gradients, cosines.gradients);
  return used;
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

/// With these no codec is taken that is not known.
LadderCosines without_unknown(LadderCosines cosines) {
  for (auto* of_direction : {&cosines.activations, &cosines.gradients}) {
    for (auto& cosine : *of_direction) cosine = cosine.value_or(0);
  }
  return cosines;
}

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
  FastestCodecs best = fastest_codecs(predictor, stages, boundaries, links, cosines);
  LadderCosines own = cosines;
  const auto is_unknown = [](const DirectedPart& codec) { return !codec.cosine->has_value(); };
  if (std::ranges::none_of(used_parts(boundaries, best.rungs, own), is_unknown)) return best;
  const FastestCodecs known = fastest_codecs(predictor, stages, boundaries, links, without_unknown(cosines));
  const auto batches = static_cast<double>(terms.batches);
  double trial = batches * best.step_seconds;
  if (!terms.compared) {
    std::vector<BoundaryRungs> reference;
    for (const auto& trials : boundaries) {
      reference.push_back({std::min(terms.reference, trials.activations.size() - 1),
                           std::min(terms.reference, trials.gradients.size() - 1)});
    }
    Measurement measurement = measurement_of(stages);
    trial += batches * seconds_of(predictor, measurement, boundaries, reference, links);
  }
  const auto ahead = static_cast<double>(terms.batches_ahead);
  if (total(known) * ahead <= total(best) * ahead + trial) return known;
  best.trial_seconds = trial;
  return best;
}

void add_measured(std::span<const BoundaryTrials> boundaries, std::span<const BoundaryRungs> rungs,
                  double cosine, LadderCosines& cosines) {
  double log = std::log(cosine);
  double squares = 0;
  std::vector<DirectedPart> unknown;
  for (const DirectedPart& codec : used_parts(boundaries, rungs, cosines)) {
    if (!codec.cosine->has_value()) {
      unknown.push_back(codec);
      squares += codec.part.square;
    } else if (codec.part.share > 0) {
      log -= codec.part.share * std::log(**codec.cosine);
    }
  }
  log = std::min(log, 0.0);
  const auto give = [](const DirectedPart& codec, double own) {
    *codec.cosine = codec.part.share > 0 ? std::exp(own / codec.part.share) : 1;
  };
  if (log < std::log(kLeastCosine)) {
    const auto square = [](const DirectedPart& codec) { return codec.part.square; };
    give(*std::ranges::max_element(unknown, {}, square), log);
    return;
  }
  for (const DirectedPart& codec : unknown) give(codec, log * codec.part.square / squares);
}

}  // namespace strait
