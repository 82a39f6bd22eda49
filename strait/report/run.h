#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "strait/run/status.h"

namespace strait::report {

/// A measured number; empty where it was not measured or is not finite.
using Value = std::optional<double>;

/// How far a run has come.
using Status = RunStatus;

/// Means over the test samples by the name of the measure: loss, accuracy, perplexity.
using Scores = std::map<std::string, double>;

/// What crossed a boundary in one direction during an epoch.
struct Traffic {
  double raw_bytes = 0;                       ///< of the float32 tensors
  double wire_bytes = 0;                      ///< of the frames, headers included
  std::map<std::string, double> diagnostics;  ///< by name; quantiles as "quantile 0.9"
};

/// What crossed a boundary during an epoch.
struct Boundary {
  std::string name;     ///< of the layer before it
  Traffic activations;  ///< forward
  Traffic gradients;    ///< backward
};

/// An evaluation within an epoch.
struct StepScores {
  int64_t step = 0;  ///< optimizer steps taken before it
  Scores off;        ///< with compression off
  Scores on;         ///< with compression on
};

/// A line of metrics.jsonl.
struct Epoch {
  int number = 0;                       ///< from 0
  double steps = 0;                     ///< of the optimizer
  double seconds = 0;                   ///< training and evaluation
  Value train_loss;                     ///< mean over the samples
  Scores off;                           ///< with compression off
  Scores on;                            ///< with compression on, as `evaluation` says
  std::string evaluation = "plain";     ///< how it was scored with compression on: plain, frozen or live
  Scores plain;                         ///< empty where it was not scored so
  Scores frozen;                        ///< empty where it was not scored so
  Scores live;                          ///< empty where it was not scored so
  std::vector<StepScores> evaluations;  ///< within the epoch
  std::vector<Boundary> boundaries;     ///< from the input to the output

  /// What a step of the optimizer would take over each of the networks of networks.h. No file has it: it is
  /// empty until whoever makes a page puts it in.
  std::vector<double> step_seconds = {};
};

/// What a run has left in its folder so far.
struct Run {
  std::string name;                 ///< of its configuration
  std::filesystem::path path;       ///< its folder
  std::string folder;               ///< the last part of that
  uint64_t seed = 0;                ///< of its random numbers
  Status status = Status::waiting;  ///< how far it has come
  std::string error;                ///< why it diverged or failed
  std::string config_hash;          ///< tells apart what was trained
  std::string config;               ///< resolved, as TOML
  std::string code_version;         ///< strait's
  std::string machine;              ///< its processor and threads
  double updated = 0;               ///< when its files were last written, seconds since 1970
  uint64_t epochs_planned = 0;      ///< by the configuration
  std::vector<Epoch> epochs;        ///< finished, in order
};

/// Whether the folder holds a run.
bool is_run(const std::filesystem::path& folder);

/// Reads config.toml, status.json and metrics.jsonl. A last line that is being written (without its end)
/// does not count. Throws InputError that names the file, the line and what was expected.
Run read_run(const std::filesystem::path& folder);

/// What a run's files hold.
struct RunTexts {
  std::string status;   ///< status.json
  std::string config;   ///< config.toml
  std::string metrics;  ///< metrics.jsonl
};

/// The same of the files' content; `folder` is for messages.
Run parse_run(const std::filesystem::path& folder, RunTexts texts);

}  // namespace strait::report
