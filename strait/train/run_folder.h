#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "strait/formats/tensorboard.h"
#include "strait/models/model.h"
#include "strait/run/writer.h"

namespace strait {

/// How a run begins in a folder that may hold one already.
enum class Start {
  fresh,    ///< refuse to touch another run
  replace,  ///< remove the other run
  resume,   ///< resume it
};

/// What a run leaves for others to use its network: the weights, and what stands beside them for transformers.
inline constexpr std::array kNetworkFiles = {
    "model.safetensors",       "config.json",           "generation_config.json", "tokenizer.json",
    "special_tokens_map.json", "tokenizer_config.json", "chat_template.jinja"};

/// Whether a run has begun there: its status.json, its metrics.jsonl or a checkpoint is in the folder. A
/// config.toml alone may be a person's.
bool holds_run(const std::filesystem::path& folder);

/// Whether a run has left there what took it time: metrics of an epoch or a checkpoint.
bool holds_results(const std::filesystem::path& folder);

/// Throws InputError when the folder holds a run, or anything else that one would replace or remove.
void check_is_free(const std::filesystem::path& folder);

/// Throws InputError when a folder without a run has what one would replace or remove, other than config.toml:
/// a run that is killed as it begins leaves that one alone.
void check_replaces_nothing(const std::filesystem::path& folder);

/// Removes what a run left in the folder and another one would take for its own.
void clear_run(const std::filesystem::path& folder);

/// Removes what processes that were killed left of the run's files as they replaced them. Throws Error.
void clear_unfinished(const std::filesystem::path& folder);

/// The files that a run leaves: those of RunWriter, events.out.tfevents.* and model.safetensors.
class RunFolder {
 public:
  /// Begins a run in an existing folder, or resumes it after so many optimizer steps: then `lines` are those
  /// that metrics.jsonl has of the epochs before. Throws Error when a file cannot be written.
  RunFolder(const std::filesystem::path& path, RunWriter::Identity identity,
            const std::vector<std::string>& lines, uint64_t step);

  /// The epochs that metrics.jsonl holds.
  const std::vector<EpochMetrics>& epochs() const { return writer_.epochs(); }

  /// Adds the epoch to all of them. Throws Error when a file cannot be written.
  void add_epoch(const EpochMetrics& metrics);

  /// Adds the steps to steps.jsonl and for TensorBoard. Throws Error when a file cannot be written.
  void add_steps(const StepMetrics& metrics);

  /// Replaces model.safetensors by the whole network. Throws Error.
  void save_model(const Model& model);

  /// See RunWriter.
  void set_status(RunStatus status, const std::string& error = "") { writer_.set_status(status, error); }

 private:
  RunWriter writer_;
  std::unique_ptr<TensorboardWriter> events_;
};

}  // namespace strait
