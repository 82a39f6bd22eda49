#pragma once

#include <optional>
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
  LinkRate link;  ///< that all messages cross
  std::vector<BoundaryLink> boundary_links =
      {};                            ///< that those of each boundary cross instead, where not empty
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

/// Predicts training steps by simulating their plan. Where the schedule steps_per_micro_batch(), a step is the
/// time that a batch adds to a long stream of micro-batches: the pipeline then neither fills nor drains.
class Predictor {
 public:
  /// The plan of the configuration's schedule for that number of stages. Throws InputError that names --stages
  /// where the schedule cannot have so many, or where the plan is too large to simulate.
  Predictor(const Config& config, int stages, CodecPlace codec_place);

  /// `measurement` is of as many stages, and its first candidate sends without compression. Where there are
  /// `boundary_links`, one for each boundary, they count instead of `link`.
  LinkPrediction predict(const Measurement& measurement, const LinkRate& link,
                         std::span<const BoundaryLink> boundary_links = {}) const;

  /// Of every stage, how many versions of its weights it holds at once.
  std::vector<int> weight_versions() const;

  /// Seconds of a step that loses no time on its codec: stage times, message sizes and the link alone.
  double ideal_seconds(std::span<const StageSeconds> stages, const CandidateCosts& candidate,
                       const LinkRate& link, std::span<const BoundaryLink> boundary_links = {}) const;

  /// The lowered plan that is simulated: of a batch, or of a stream.
  const Plan& plan() const { return plan_; }

 private:
  /// A step, or the time of one in a stream.
  struct Prediction {
    double seconds = 0;
    TimeShares shares;
  };
  Prediction step(const CostModel& costs) const;
  CostModel costs_of(std::span<const StageSeconds> stages, const CandidateCosts& candidate,
                     const LinkRate& link, std::span<const BoundaryLink> boundary_links) const;

  WeightVersions versions_;
  Plan plan_;
  std::optional<Plan> beginning_;  ///< of a stream: the plan of its beginning, which is not counted
  int batches_ = 1;                ///< that the plan has, without the beginning
  CodecPlace codec_place_;
};

}  // namespace strait
