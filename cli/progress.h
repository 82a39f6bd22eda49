#pragma once

#include <string>

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
  ~Progress() override;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void on_batch(int epoch, const char* phase, int64_t done, int64_t total, double mean_loss) override;
  void on_epoch(const EpochMetrics& metrics) override;
  void on_evaluation(const StepEvaluation& evaluation) override;
  void on_note(const std::string& line) override;
  bool should_stop() override;

 private:
  void begin_pass(int epoch, int64_t done);
  double rate(int64_t done) const;
  double run_left(const Pace& pace) const;
  void clear_bar();

  std::string label_;
  int epochs_;
  bool verbose_;
  double seconds_between_lines_;
  bool terminal_;
  bool bar_shown_ = false;
  Stopwatch since_shown_;

  // The pass over the samples, from the end of its first batch: what comes before it is no part of the rate.
  Stopwatch pass_;
  int64_t first_done_ = 0;
  int64_t last_done_ = 0;

  int epoch_ = -1;
  Stopwatch epoch_watch_;
  double epoch_seconds_ = 0;  ///< of the last whole epoch; 0: there was none
};

}  // namespace strait::cli
