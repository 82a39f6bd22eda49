#include "strait/planning/codec_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace strait {
namespace {

constexpr double kLeastCosine = 0.85;   // of a codec that gradients may have
constexpr double kCosinePower = 2;      // of one over the cosines
constexpr double kNoisePower = 0.25;    // of the gradients' squares with their errors, over those without
constexpr double kErrorPower = 2;       // of one over the share of the activations' squares that is no error
constexpr double kWorthwhile = 0.995;   // of the time before: a change that gains less is none
constexpr double kWorthWatching = 0.9;  // of the time with none of the codecs that may turn gradients
constexpr double kNever = std::numeric_limits<double>::infinity();

/// The logarithm of what a codec of activations makes of the steps.
double log_of_activations(const CodecTrial& trial) {
  const double error = trial.relative_error;
  return error < 1 ? -kErrorPower * std::log1p(-error * error) : kNever;
}

/// Likewise, of gradients.
double log_of_gradients(const CodecTrial& trial) {
  const double error = trial.relative_error;
  if (trial.cosine < kLeastCosine || std::isinf(error)) return kNever;
  return kNoisePower * std::log1p(error * error) - kCosinePower * std::log(trial.cosine);
}

/// In a direction where no codec may be taken the mildest alone, so that what it loses decides nothing
/// elsewhere.
std::vector<BoundaryTrials> without_hopeless(std::span<const BoundaryTrials> boundaries) {
  std::vector<BoundaryTrials> all(boundaries.begin(), boundaries.end());
  const auto keep_mildest = [](std::vector<CodecTrial>& trials, const auto& log_of) {
    if (std::ranges::all_of(trials, [&](const CodecTrial& trial) { return std::isinf(log_of(trial)); }))
      trials.resize(1);
  };
  for (auto& [activations, gradients] : all) {
    keep_mildest(activations, log_of_activations);
    keep_mildest(gradients, log_of_gradients);
  }
  return all;
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

/// For the steps that one without compression is worth.
double total(const FastestCodecs& codecs) { return codecs.step_seconds * codecs.step_factor; }

/// Looks for the codecs with the least time, from several beginnings.
class Search {
 public:
  Search(const Predictor& predictor, const std::vector<StageSeconds>& stages,
         std::span<const BoundaryTrials> boundaries, std::span<const BoundaryLink> links)
      : predictor_(predictor), boundaries_(without_hopeless(boundaries)), links_(links) {
    measurement_.stages = stages;
    measurement_.candidates.resize(1);
  }

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
    const double factor = step_factor(boundaries_, rungs);
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
  std::vector<BoundaryTrials> boundaries_;
  std::span<const BoundaryLink> links_;
};

}  // namespace

double step_factor(std::span<const BoundaryTrials> boundaries, std::span<const BoundaryRungs> rungs) {
  const auto mean_log = [&](auto trials, auto rung, const auto& log_of) {
    double sum = 0;
    double choices = 0;
    for (size_t i = 0; i < boundaries.size(); ++i) {
      const std::vector<CodecTrial>& tried = boundaries[i].*trials;
      if (tried.size() == 1) continue;
      sum += log_of(tried[rungs[i].*rung]);
      ++choices;
    }
    return choices > 0 ? sum / choices : 0;
  };
  return std::exp(mean_log(&BoundaryTrials::activations, &BoundaryRungs::activations, log_of_activations) +
                  mean_log(&BoundaryTrials::gradients, &BoundaryRungs::gradients, log_of_gradients));
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
                             std::span<const BoundaryTrials> boundaries, std::span<const BoundaryLink> links) {
  return Search(predictor, stages, boundaries, links).run();
}

bool is_worth_watching(const Predictor& predictor, const std::vector<StageSeconds>& stages,
                       std::span<const BoundaryTrials> boundaries, std::span<const BoundaryLink> links) {
  const auto may_turn = [](const CodecTrial& trial) { return trial.relative_error > kSmallError; };
  if (std::ranges::none_of(boundaries, [&](const BoundaryTrials& trials) {
        return trials.gradients.size() > 1 && std::ranges::any_of(trials.gradients, may_turn);
      })) {
    return false;
  }
  const auto seconds_if = [&](double cosine) {
    std::vector<BoundaryTrials> assumed(boundaries.begin(), boundaries.end());
    for (auto& [activations, gradients] : assumed) {
      for (auto& trial : gradients) {
        if (may_turn(trial)) trial.cosine = cosine;
      }
    }
    return total(fastest_codecs(predictor, stages, assumed, links));
  };
  return seconds_if(1) < kWorthWatching * seconds_if(0);
}

}  // namespace strait
