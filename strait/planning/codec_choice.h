#pragma once

#include <span>
#include <vector>

#include "strait/boundary/codec_trial.h"
#include "strait/config/config.h"
#include "strait/pipeline/simulate.h"
#include "strait/planning/prediction.h"
#include "strait/run/metrics.h"
#include "strait/train/automatic_codecs.h"

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

/// How many times as many steps a training is expected to need with such codecs: the power -2 of the product of
/// the cosines, as with steps of the best length, times in each direction the power 1/4 of 1 + e^2 with the
/// relative errors e, the geometric mean over boundaries, for the noise that a cosine of mean gradients leaves
/// out. A boundary has a share in the logarithm of its codec's cosine that is that of its error's square among
/// all boundaries with a choice. Cosines that are not known count as one. Boundaries whose codec is not chosen,
/// which have one trial where the ladder has more codecs, do not count. Infinite with a cosine below 0.85,
/// since a training was lost with 0.81 (docs/results/auto.md), and with an infinite error.
double step_factor(std::span<const BoundaryTrials> boundaries, std::span<const BoundaryRungs> rungs,
                   const LadderCosines& cosines);

/// For every direction the codec with the fewest bytes whose error is at most the budget; where there is none,
/// the one with the least error.
std::vector<BoundaryRungs> within_budget(std::span<const BoundaryTrials> boundaries, double budget);

/// The codecs with which the steps to a loss are expected to take the least time, with what a step then takes.
struct FastestCodecs {
  std::vector<BoundaryRungs> rungs;  ///< of each boundary
  double step_seconds = 0;           ///< of a step, by the predictor
  double step_factor = 1;            ///< see step_factor()
  double trial_seconds = 0;          ///< that measuring their cosines is expected to take
};

/// Searches from every codec that all directions may have, one boundary after the other, so that no such
/// uniform choice is expected to be faster. Among those as fast as each other, the milder. `links` are one a
/// boundary.
FastestCodecs fastest_codecs(const Predictor& predictor, const std::vector<StageSeconds>& stages,
                             std::span<const BoundaryTrials> boundaries, std::span<const BoundaryLink> links,
                             const LadderCosines& cosines);

/// Likewise, but for what is not worth measuring. A codec whose cosine is not known counts as turning nothing,
/// and as costing its trials; it is taken if it then gains more time in the batches ahead than it costs, by
/// itself and together with the others and the reference that they share. trial_seconds is of those that are
/// taken.
FastestCodecs fastest_worth_measuring(const Predictor& predictor, const std::vector<StageSeconds>& stages,
                                      std::span<const BoundaryTrials> boundaries,
                                      std::span<const BoundaryLink> links, const LadderCosines& cosines,
                                      const TrialTerms& terms);

}  // namespace strait
