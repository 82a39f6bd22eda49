#pragma once

#include <span>
#include <string>
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

/// How many times as many steps a training is expected to need with such errors of its messages: the product
/// over the boundaries of (1 - e^2)^(-a / boundaries), e the relative error and a 0.9 forward and 0.35
/// backward. Fitted to the trainings of docs/results/operators.md and findings.md: of 73 schemes without
/// feedback it gives 53 within 15% of the steps that none needs to the loss with which each ends. `lowrank`,
/// `sign` and `onebit` of activations and `daq` need more than it says, `random` less. Infinite from an error
/// of 1 on.
double step_factor(std::span<const BoundaryTrials> boundaries, std::span<const BoundaryRungs> rungs);

/// For every direction the codec with the fewest bytes whose error is below the budget; where there is none,
/// the one with the least error.
std::vector<BoundaryRungs> within_budget(std::span<const BoundaryTrials> boundaries, double budget);

/// The codecs with which the steps to a loss are expected to take the least time, with what a step then takes.
struct FastestCodecs {
  std::vector<BoundaryRungs> rungs;  ///< of each boundary
  double step_seconds = 0;           ///< of a step, by the predictor
  double step_factor = 1;            ///< see step_factor()
};

/// Searches from every codec that all directions may have, one boundary after the other, so that no such
/// uniform choice is expected to be faster. Among those as fast as each other, the milder. `links` are one a
/// boundary.
FastestCodecs fastest_codecs(const Predictor& predictor, const std::vector<StageSeconds>& stages,
                             std::span<const BoundaryTrials> boundaries, std::span<const BoundaryLink> links);

/// Makes choices for runs of a configuration: measures the links of its boundaries, or takes those of
/// compression.auto.network or pipeline.link, puts together what all processes know, and decides on the first
/// of them. One process without any of these has links that are no limit.
ChooseCodecs codec_chooser(const Config& config);

}  // namespace strait
