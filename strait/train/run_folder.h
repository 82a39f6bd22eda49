#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "strait/models/model.h"
#include "strait/train/metrics.h"
#include "strait/train/tensorboard.h"

namespace strait {

enum class RunStatus { running, done, diverged, failed, stopped };

std::string_view to_string(RunStatus status);

/// The files that a run leaves: config.toml, metrics.jsonl, events.out.tfevents.*, status.json and
/// model.safetensors. Whole files are replaced in one step, so that a reader or a crash never meets half
/// of one.
class RunFolder {
 public:
  /// What stays the same from the run's start to its end.
  struct Identity {
    std::string name;
    std::string config;  ///< resolved, as TOML
    uint64_t seed = 0;
    std::string config_hash;
    int epochs = 0;
  };

  /// Begins a run in `path`, made where it is missing. Throws InputError when another run's files are
  /// there, unless they are to be replaced.
  RunFolder(std::filesystem::path path, Identity identity, bool replace);

  const std::filesystem::path& path() const { return path_; }

  void add_epoch(const EpochMetrics& metrics);
  void save_model(const Model& model);
  void set_status(RunStatus status, const std::string& error = "");

 private:
  struct Best {
    int epoch;
    double accuracy;
    double loss;
  };
  void add_scalars(const EpochMetrics& metrics);

  std::filesystem::path path_;
  Identity identity_;
  std::ofstream metrics_;
  std::unique_ptr<TensorboardWriter> events_;
  std::optional<Best> best_off_;
  std::optional<Best> best_on_;
  std::optional<EpochMetrics> last_;
};

}  // namespace strait
