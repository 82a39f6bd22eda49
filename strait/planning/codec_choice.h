#pragma once

#include <span>
#include <vector>

#include "strait/boundary/codec_trial.h"
#include "strait/config/config.h"
#include "strait/pipeline/simulate.h"
#include "strait/planning/prediction.h"

namespace strait {

/// What is known of a boundary when its codecs are to be chosen: in each direction the costs and errors of the
/// codecs that it may have, at least one, the mildest first.
struct BoundaryTrials {
  std::vector<CodecTrial> activations;  ///< forward
  std::vector<CodecTrial> gradients;    ///< backward
};

/// Of each direction of a boundary the place of a codec among its trials.
struct BoundaryRungs {
  size_t activations = 0;  ///< forward
  size_t gradients = 0;    ///< backward

  bool operator==(const BoundaryRungs&) const = default;
};

/// How many times as many steps a training is expected to need with such codecs, the geometric mean over
/// boundaries of what they cost in each direction (docs/results/auto_prices.md). Activations with the relative
/// error e cost the power -2 of 1 - e^2. Gradients with the cosine c and the error e cost the power -2 of c, as
/// with steps of the best length, times the power 1/4 of 1 + e^2, for the noise that a cosine of mean gradients
/// leaves out. Infinite with an error of 1 and more in activations, and with a cosine below 0.85 or an infinite
/// error in gradients. Directions that have one codec to choose from do not count.
double step_factor(std::span<const BoundaryTrials> boundaries, std::span<const BoundaryRungs> rungs);

/// For every direction the codec with the fewest bytes whose error is at most the budget; where there is none,
/// the one with the least error.
std::vector<BoundaryRungs> within_budget(std::span<const BoundaryTrials> boundaries, double budget);

/// The codecs with which the steps to a loss are expected to take the least time, with what a step then takes.
struct FastestCodecs {
  std::vector<BoundaryRungs> rungs;  ///< of each boundary
  double step_seconds = 0;           ///< of a step, by the predictor
  double step_factor = 1;            ///< see step_factor()
};

/// Searches from every codec that all directions may have, one boundary after the other, so that no such
/// uniform choice is expected to be faster. Among those as fast as each other, the milder. Where step_factor()
/// is infinite with every codec of a direction, that has the mildest, and does not count. `links` are one a
/// boundary.
FastestCodecs fastest_codecs(const Predictor& predictor, const std::vector<StageSeconds>& stages,
                             std::span<const BoundaryTrials> boundaries, std::span<const BoundaryLink> links);

/// Whether it could gain a tenth of the time to know how far gradients turn with codecs whose errors are not
/// small: between none of these and all of them turning nothing.
bool is_worth_watching(const Predictor& predictor, const std::vector<StageSeconds>& stages,
                       std::span<const BoundaryTrials> boundaries, std::span<const BoundaryLink> links);

}  // namespace strait
