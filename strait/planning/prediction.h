#pragma once

#include <span>
#include <string>
#include <vector>

#include "strait/pipeline/schedules.h"
#include "strait/planning/measurement.h"

namespace strait {

/// What a step of one candidate is predicted to take over one link.
struct CandidateStep {
  std::string candidate;  ///< its name
  bool own = false;       ///< the configuration's
  double ratio = 1;       ///< see CandidateCosts
  double seconds = 0;     ///< of the step
  TimeShares shares;      ///< what the step is made of
};

/// The predictions for all candidates over one link.
struct LinkPrediction {
  LinkRate link;                     ///< that all messages cross
  std::vector<CandidateStep> steps;  ///< in the order of the candidates
  size_t best = 0;                   ///< the fastest of them

  /// The step without compression.
  const CandidateStep& none() const { return steps.front(); }

  /// The step of the fastest candidate.
  const CandidateStep& fastest() const { return steps[best]; }

  /// Whether a codec gains more than kWorthwhile over none.
  bool compression_pays() const;

  /// How many times faster a step must be for compression to pay: less is within what measurements scatter.
  static constexpr double kWorthwhile = 1.02;
};

/// Predicts training steps by simulating their plan.
class Predictor {
 public:
  /// The plan of the configuration's schedule for that number of stages. Throws InputError that names --stages
  /// where the schedule cannot have so many, or where the plan is too large to simulate.
  Predictor(const Config& config, int stages, CodecPlace codec_place);

  /// `measurement` is of as many stages, and its first candidate sends without compression.
  LinkPrediction predict(const Measurement& measurement, const LinkRate& link) const;

  /// Seconds of a step that loses no time on its codec: stage times, message sizes and the link alone.
  double ideal_seconds(std::span<const StageSeconds> stages, const CandidateCosts& candidate,
                       const LinkRate& link) const;

  /// The lowered plan that is simulated.
  const Plan& plan() const { return plan_; }

 private:
  CostModel costs_of(std::span<const StageSeconds> stages, const CandidateCosts& candidate,
                     const LinkRate& link) const;

  Plan plan_;
  CodecPlace codec_place_;
};

}  // namespace strait
