#pragma once

#include <string>

#include "strait/base/clock.h"
#include "strait/train/trainer.h"

namespace strait::cli {

/// Shows a run to a person: on a terminal a bar with rate and time left on standard error, and always a
/// line an epoch on standard output. Ends the run when a stop signal has come.
class Progress : public TrainObserver {
 public:
  /// `label` stands before every line; empty for none.
  Progress(std::string label, int epochs);
  ~Progress() override;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void on_batch(int epoch, const char* phase, int64_t done, int64_t total, double mean_loss) override;
  void on_epoch(const EpochMetrics& metrics) override;
  void on_evaluation(const StepEvaluation& evaluation) override;
  void on_note(const std::string& line) override;
  bool should_stop() override;

 private:
  void clear_bar();

  std::string label_;
  int epochs_;
  bool terminal_;
  bool bar_shown_ = false;
  Stopwatch pass_;
  Stopwatch since_drawn_;
  int64_t last_done_ = 0;
};

}  // namespace strait::cli
