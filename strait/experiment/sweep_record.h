#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "strait/experiment/run.h"
#include "strait/experiment/sweep.h"

namespace strait {

/// How a run of a sweep stands.
struct RunState {
  std::optional<RunStatus> status;  ///< nothing: it waits
  std::string error;                ///< why it failed
};

/// What is known of a sweep's runs, kept in the file sweep.json of its folder, which strait report reads
/// too: `{"name", "title", "runs": [{"variant", "seed", "folder", "config_hash", "status", "paper"?,
/// "error"?}]}` in the sweep's order, `status` being a run's or "waiting", `folder` relative.
class SweepRecord {
 public:
  /// Takes what the runs' folders say of runs of these configurations. Writes nothing. A run whose status.json
  /// cannot be read, or is none that a run wrote, has failed.
  SweepRecord(const Sweep& sweep, std::filesystem::path folder);

  /// How the run at that place of the sweep stands.
  const RunState& state(size_t run) const { return states_.at(run); }

  /// Whether the run has come to an end that is not to be repeated: done or diverged.
  bool is_finished(size_t run) const;

  /// Names the runs, of those at these places of the sweep, in whose folders another configuration's run has
  /// come to its end or left a checkpoint, each with a key that differs, if its config.toml is there; and
  /// those in whose folders are results without the status.json that says whose they are. Throws InputError
  /// where a folder cannot be read.
  std::vector<std::string> others_trained(const std::vector<size_t>& runs) const;

  /// The name of another sweep whose record lies in the folder. Throws InputError for a record that cannot be
  /// read.
  std::optional<std::string> other_sweep() const;

  /// Notes how a run stands and writes the file.
  void set(size_t run, RunState state);

  /// Replaces the file in one step, the folder made where it is missing. Throws InputError when the folder
  /// cannot be made, Error when the file cannot be written.
  void save() const;

 private:
  const Sweep& sweep_;
  std::filesystem::path folder_;
  std::vector<std::string> hashes_;  ///< of the configurations, which do not change
  std::vector<RunState> states_;
};

}  // namespace strait
