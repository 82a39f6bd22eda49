#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "strait/run/metrics.h"
#include "strait/run/status.h"

namespace strait {

/// Writes what a run says of itself: config.toml, metrics.jsonl and status.json. Whole files are replaced in
/// one step, so that a reader or a crash never meets half of one.
class RunWriter {
 public:
  /// What stays the same from the run's start to its end.
  struct Identity {
    std::string name;          ///< of the configuration
    std::string config;        ///< resolved, as TOML
    uint64_t seed = 0;         ///< of the configuration
    std::string config_hash;   ///< see config_hash()
    int epochs = 0;            ///< of the whole training
    int first_epoch = 0;       ///< above 0 for a run that starts from another one's checkpoint
    std::string machine = {};  ///< that it runs on
    int threads = 0;           ///< of this process
  };

  /// Begins a run in an existing folder, or resumes it after so many optimizer steps: then `lines` are those
  /// that metrics.jsonl has of the epochs before, and steps.jsonl keeps those of steps up to there, as far as
  /// they can be read. Throws Error when a file cannot be written.
  RunWriter(std::filesystem::path path, Identity identity, const std::vector<std::string>& lines,
            uint64_t step = 0);

  /// The folder.
  const std::filesystem::path& path() const { return path_; }

  /// The epochs that metrics.jsonl holds.
  const std::vector<EpochMetrics>& epochs() const { return epochs_; }

  /// Appends a line to metrics.jsonl and updates status.json. Throws Error when a file cannot be written.
  void add_epoch(const EpochMetrics& metrics);

  /// Appends a line to steps.jsonl. Throws Error when it cannot be written.
  void add_steps(const StepMetrics& metrics);

  /// Replaces status.json; `error` says why a run diverged or failed. Throws Error.
  void set_status(RunStatus status, const std::string& error = "");

 private:
  struct Best {
    int epoch;
    Score score;
  };
  void take_in(const EpochMetrics& metrics);

  std::filesystem::path path_;
  Identity identity_;
  std::optional<Best> best_off_;
  std::optional<Best> best_on_;
  EvaluationMode named_ = EvaluationMode::plain;  ///< what best_on_ was scored as
  std::vector<EpochMetrics> epochs_;
};

}  // namespace strait
