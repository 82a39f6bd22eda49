#pragma once

#include <set>
#include <string>
#include <utility>

#include "cli/live_line.h"
#include "cli/pace.h"
#include "cli/progress_text.h"
#include "strait/base/clock.h"
#include "strait/train/trainer.h"

namespace strait::cli {

/// Shows a run to a person: on a terminal a bar with rate and time left on standard error, without one a line
/// now and then on standard output, and always a line per epoch there. Ends the run when a stop signal has
/// come.
class Progress : public TrainObserver {
 public:
  static constexpr double kSecondsBetweenLines = 10;

  /// `label` stands before every line; empty for none. With `verbose` the costs of every boundary and stage
  /// follow an epoch's line.
  Progress(std::string label, int epochs, bool verbose = false,
           double seconds_between_lines = kSecondsBetweenLines);

  void on_batch(int epoch, const char* phase, int64_t done, int64_t total, double mean_loss) override;
  void on_epoch(const EpochMetrics& metrics) override;
  void on_steps(const StepMetrics& metrics) override;
  void on_evaluation(const StepEvaluation& evaluation) override;
  void on_note(const std::string& line) override;
  bool should_stop() override;

 private:
  double run_left(const Pace& pace) const;

  std::string label_;
  int epochs_;
  bool verbose_;
  double seconds_between_lines_;
  LiveLine bar_;
  Stopwatch since_line_;  ///< without a terminal
  PassRate pass_;
  EpochTimes epoch_times_;
  std::set<std::pair<int, int>> relayed_;  ///< the pairs of ranks that speak through rank 0, as far as was said
};

}  // namespace strait::cli
