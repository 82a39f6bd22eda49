#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "strait/base/child.h"
#include "strait/experiment/sweep_record.h"
#include "strait/run/metrics_tail.h"

namespace strait {

/// Is told how the runs of a sweep come along. A run is its place in Sweep::runs.
class SweepObserver {
 public:
  virtual ~SweepObserver() = default;

  /// Its process is about to start.
  virtual void on_start(size_t /*run*/) {}

  /// It has written an epoch into its metrics.
  virtual void on_epoch(size_t /*run*/, const EpochProgress& /*epoch*/) {}

  /// It has ended, or could not start; the record says so already.
  virtual void on_end(size_t /*run*/, const RunState& /*state*/) {}

  /// Called many times a second. Whether the runs are to be stopped in order, and none more started.
  virtual bool should_stop() { return false; }
};

/// Trains runs of a sweep, each in a process of its own: several at once, each on its own cores, because
/// the threads of two that share a core wait for each other in loops; and a run that dies takes nothing
/// along.
class SweepRunner {
 public:
  /// The processes that train: `PROGRAM train FOLDER/next.toml --out FOLDER FLAGS`, with --resume or
  /// --overwrite where the folder has a run.
  struct Processes {
    std::vector<std::string> program;     ///< the path of strait, or of a program that takes the same words
    int jobs = 1;                         ///< how many at once; at most the cores that there are
    std::vector<std::string> flags = {};  ///< more of the words, at their end
    bool replaces_unreadable = false;     ///< runs whose status.json cannot be read begin anew; else they fail
  };

  /// `folder` is the sweep's. All references must outlive the object.
  SweepRunner(const Sweep& sweep, std::filesystem::path folder, SweepRecord& record, SweepObserver& observer,
              Processes processes);

  /// Trains the runs at these places of the sweep, in that order, and records how each ends; one that fails
  /// does not keep the others from running. When the observer asks for it, stops those that run in order and
  /// starts no more. Returns false when it was stopped. Throws Error when a record cannot be written, once all
  /// have stopped in order.
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
    bool ended = false;  ///< the child, which is asked nothing any more
  };

  /// Nothing where the run cannot begin, which is its end.
  std::unique_ptr<Job> start(size_t run, size_t slot);
  bool has_ended(Job& job);
  bool train_all(std::span<const size_t> runs);
  void ask_to_stop();
  void stop_all();
  void record_end(size_t run, const RunState& state);

  const Sweep& sweep_;
  std::filesystem::path folder_;
  SweepRecord& record_;
  SweepObserver& observer_;
  Processes processes_;
  std::vector<std::unique_ptr<Job>> slots_;  ///< one per job; empty when it has nothing to do
};

}  // namespace strait
