#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "cli/sweep_progress.h"
#include "strait/base/child.h"
#include "strait/experiment/sweep_record.h"

namespace strait::cli {

/// Trains runs of a sweep, each in a process of its own: several at once, each on its own cores, because
/// the threads of two that share a core wait for each other in loops; and a run that dies takes nothing
/// along.
class SweepRunner {
 public:
  /// `folder` is the sweep's. `jobs` must not be more than the cores there are. All must outlive the object.
  /// The runs' logs say more where they are to be `verbose`.
  SweepRunner(const Sweep& sweep, std::filesystem::path folder, int jobs, SweepRecord& record,
              SweepProgress& progress, bool verbose);

  /// Trains the runs at these places of the sweep, in that order, and records how each ends; one that fails
  /// does not keep the others from running. When a stop signal comes, stops those that run in order and
  /// starts no more. Returns false when it was stopped.
  bool train(std::span<const size_t> runs);

 private:
  /// One run's process.
  struct Job {
    Job(size_t place, const std::filesystem::path& run_folder, const Child::Command& command)
        : run(place), folder(run_folder), tail(run_folder / "metrics.jsonl"), child(command) {}

    size_t run;
    std::filesystem::path folder;
    MetricsTail tail;
    Child child;
  };

  /// Nothing where the run cannot begin, which is its end.
  std::unique_ptr<Job> start(size_t run, size_t slot);
  bool has_ended(Job& job);
  void record_end(size_t run, const RunState& state);

  const Sweep& sweep_;
  std::filesystem::path folder_;
  SweepRecord& record_;
  SweepProgress& progress_;
  bool verbose_;
  std::vector<std::unique_ptr<Job>> slots_;  ///< one per job; empty when it has nothing to do
};

}  // namespace strait::cli
