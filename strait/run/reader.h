#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "strait/run/metrics.h"

namespace strait {

/// The epochs of the text of a metrics.jsonl, whose path is for messages: of the lines that are complete. What
/// follows the last end of line is one that is being written, or that a killed run left; a run that `is_done`
/// has none, and its last epoch was scored. Epochs rise. Throws InputError that names the line, the key and
/// what was expected.
std::vector<EpochMetrics> parse_epochs(std::string_view text, const std::filesystem::path& file, bool is_done);

/// The same of a run's metrics.jsonl.
std::vector<EpochMetrics> read_epochs(const std::filesystem::path& folder, bool is_done);

/// The complete lines of a run's steps.jsonl; none where there is no such file. Throws InputError likewise.
std::vector<StepMetrics> read_steps(const std::filesystem::path& folder);

/// The last epoch of a run's metrics.jsonl. Throws InputError likewise, and when there is none.
EpochMetrics read_last_epoch(const std::filesystem::path& folder);

/// Whether metrics.jsonl begins with these lines; true where there are none. Throws InputError when it is no
/// file.
bool has_metrics(const std::filesystem::path& folder, const std::vector<std::string>& lines);

/// The last epoch of a run in a few numbers.
struct RunSummary {
  Evaluation test;                 ///< of the last epoch
  double train_loss = 0;           ///< of the last epoch
  double wire_bytes_per_step = 0;  ///< over all boundaries, both directions
  double ratio = 1;                ///< uncompressed over wire bytes, likewise
  double seconds = 0;              ///< of training and evaluation, all epochs
};

/// Reads metrics.jsonl of a run that is done. Throws InputError that names the line that is wrong.
RunSummary summarise(const std::filesystem::path& folder);

}  // namespace strait
