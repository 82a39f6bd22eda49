#pragma once

#include <optional>
#include <string>
#include <vector>

#include "strait/doctor/link_file.h"
#include "strait/planning/prediction.h"

namespace strait::cli {

/// A run that was measured.
struct MeasuredRun {
  std::string folder;
  double step_seconds = 0;  ///< of a step of a full batch
};

/// Links that strait doctor has measured; none where the file has no name.
struct MeasuredLinks {
  std::string file;
  std::vector<MeasuredBoundary> boundaries;

  /// Those of the boundaries alone.
  std::vector<BoundaryLink> links() const;
};

/// All that `strait plan` has to say.
struct PlanReport {
  Config config;
  Measurement measurement;  ///< as simulated
  size_t ranks = 1;
  std::vector<int> weight_versions;   ///< of every stage, at once
  std::optional<int> assumed_stages;  ///< of --stages
  MeasuredLinks measured_links;       ///< of --links
  std::vector<LinkPrediction> links;
  std::vector<double> ideal_seconds;  ///< of the configuration's own codec, for each link
  std::optional<MeasuredRun> run;     ///< of --measured

  /// The step of the configuration's own codec, which a run measures, over a link.
  const CandidateStep& own_step(size_t link) const;
};

std::string plan_text(const PlanReport& report);

/// One JSON object on one line.
std::string plan_json(const PlanReport& report);

}  // namespace strait::cli
