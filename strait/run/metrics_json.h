#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "strait/base/json_reader.h"
#include "strait/run/metrics.h"

namespace strait {

// Metrics as JSON: the lines of metrics.jsonl, and parts of them in other files.

/// A metric that is infinite, which JSON does not have, is null.
nlohmann::json to_json(const Score& score);

/// Scores off and on, and in every mode.
nlohmann::json to_json(const Evaluation& evaluation);

/// An array, an object per evaluation.
nlohmann::json to_json(const std::vector<StepEvaluation>& evaluations);

/// The object of a line of metrics.jsonl.
nlohmann::json to_json(const EpochMetrics& metrics);

/// The list under `links`.
nlohmann::json to_json(const std::vector<LinkMetrics>& links);

/// The list under `choices`.
nlohmann::json to_json(const std::vector<CodecChoice>& choices);

/// An array, an object per boundary.
nlohmann::json to_json(const std::vector<BoundaryTraffic>& boundaries);

/// The line of steps.jsonl, without its end.
std::string to_line(const StepMetrics& metrics);

/// The inverse; `name` is the file's and the line's. Throws InputError for anything else.
StepMetrics parse_step(std::string_view line, const std::string& name);

/// The line of metrics.jsonl, without its end.
std::string to_line(const EpochMetrics& metrics);

// The inverse of to_json(). What an older or another program has not written is 0, or not a number where it is
// a loss or a diagnostic; what decides about results must be there. All throw InputError that names the key.

/// Of an evaluation.
Evaluation evaluation_in(const JsonReader& from);

/// Of evaluations within an epoch.
std::vector<StepEvaluation> step_evaluations_in(const JsonReader& from);

/// Of boundaries.
std::vector<BoundaryTraffic> boundary_traffic_in(const JsonReader& from);

/// Of the list under `links`.
std::vector<LinkMetrics> links_in(const JsonReader& from);

/// Of the list under `choices`.
std::vector<CodecChoice> choices_in(const JsonReader& from);

/// Of an epoch.
EpochMetrics epoch_in(const JsonReader& line);

/// A line of metrics.jsonl; `name` is the file's and the line's. Throws InputError for anything else.
EpochMetrics parse_epoch(std::string_view line, const std::string& name);

}  // namespace strait
