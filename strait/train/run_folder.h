#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strait/formats/tensorboard.h"
#include "strait/models/model.h"
#include "strait/train/metrics.h"

namespace strait {

/// How a run begins in a folder that may hold one already.
enum class Start {
  fresh,    ///< refuse to touch another run
  replace,  ///< remove the other run
  resume,   ///< resume it
};

/// How far a run has come, as status.json says it.
enum class RunStatus { running, done, diverged, failed, stopped };

/// The word of status.json.
std::string_view to_string(RunStatus status);

/// Throws InputError when a run's metrics or checkpoints are in the folder.
void check_is_free(const std::filesystem::path& folder);

/// Removes what a run left in the folder and another one would take for its own.
void clear_run(const std::filesystem::path& folder);

/// Whether metrics.jsonl begins with these lines; true where there are none. Throws InputError when it is no
/// file.
bool has_metrics(const std::filesystem::path& folder, const std::vector<std::string>& lines);

/// The files that a run leaves: config.toml, metrics.jsonl, events.out.tfevents.*, status.json, checkpoint/
/// and model.safetensors. Whole files are replaced in one step, so that a reader or a crash never meets half
/// of one.
class RunFolder {
 public:
  /// What stays the same from the run's start to its end.
  struct Identity {
    std::string name;         ///< of the configuration
    std::string config;       ///< resolved, as TOML
    uint64_t seed = 0;        ///< of the configuration
    std::string config_hash;  ///< see config_hash()
    int epochs = 0;           ///< of the whole training
    int first_epoch = 0;      ///< above 0 for a run that starts from another one's checkpoint
  };

  /// Begins a run in an existing folder, or resumes it: then `lines` are those that metrics.jsonl has of
  /// the epochs before.
  RunFolder(std::filesystem::path path, Identity identity, const std::vector<std::string>& lines);

  /// The folder.
  const std::filesystem::path& path() const { return path_; }

  /// The epochs that metrics.jsonl holds.
  const std::vector<EpochMetrics>& epochs() const { return epochs_; }

  /// Appends a line to metrics.jsonl and its numbers to the events, and updates status.json. Throws Error when
  /// a file cannot be written.
  void add_epoch(const EpochMetrics& metrics);

  /// Replaces model.safetensors by the whole network. Throws Error.
  void save_model(const Model& model);

  /// Replaces status.json; `error` says why a run diverged or failed. Throws Error.
  void set_status(RunStatus status, const std::string& error = "");

 private:
  struct Best {
    int epoch;
    Score score;
  };
  void take_in(const EpochMetrics& metrics);
  void add_scalars(const EpochMetrics& metrics);
  void add_scores(const std::string& kind, int64_t step, const Evaluation& test);

  std::filesystem::path path_;
  Identity identity_;
  std::ofstream metrics_;
  std::unique_ptr<TensorboardWriter> events_;
  std::optional<Best> best_off_;
  std::optional<Best> best_on_;
  std::vector<EpochMetrics> epochs_;
};

}  // namespace strait
