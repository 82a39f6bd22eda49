#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/live_line.h"
#include "strait/base/clock.h"
#include "strait/experiment/sweep_runner.h"
#include "strait/planning/forecast.h"
#include "strait/run/metrics_tail.h"

namespace strait::cli {

/// Shows a sweep to a person. On a terminal: a live line on standard error with the runs that are done,
/// those that run, and the time. Without one: a line per epoch on standard output. Always a line at a run's
/// end, with the time left.
class SweepProgress : public SweepObserver {
 public:
  /// Of the sweep's runs only those at the places `chosen` count. `record` says which have come to their
  /// end already. Shows nothing where it is to be `quiet`.
  SweepProgress(const Sweep& sweep, std::span<const size_t> chosen, const SweepRecord& record, int jobs,
                bool quiet);

  void on_start(size_t run) override;
  void on_epoch(size_t run, const EpochProgress& epoch) override;
  void on_end(size_t run, const RunState& state) override;

  /// Draws the live line anew when it is time to. Ends the sweep when a stop signal has come.
  bool should_stop() override;

 private:
  struct View {
    std::string name;
    int epochs = 0;
    bool running = false;
    Stopwatch since_start;
    std::optional<EpochProgress> last;
    RunPace pace;
  };

  void draw();
  std::string live_line() const;
  std::string time_left() const;

  std::vector<View> views_;  ///< one for each run of the sweep
  size_t chosen_;
  size_t ended_ = 0;
  int jobs_;
  size_t name_width_ = 0;
  bool quiet_;
  LiveLine line_;
  Stopwatch whole_;
};

}  // namespace strait::cli
