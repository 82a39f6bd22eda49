#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strait/boundary/channel.h"
#include "strait/pipeline/executor.h"

namespace strait {

/// Means over the predictions for a set of samples.
struct Score {
  double loss = 0;
  double accuracy = 0;                    ///< percent
  std::optional<double> perplexity = {};  ///< of text: exp(loss), which may be infinite
};

Score score_of(const StepResult& sums, bool is_text = false);

/// Whether it is the better one of the same network: by accuracy, of text by the loss.
bool is_better(const Score& score, const Score& than);

/// The same samples without and with compression at the boundaries.
struct Evaluation {
  Score off;
  Score on;
  int64_t samples = 0;
};

struct BoundaryTraffic {
  std::string name;
  Traffic activations;
  Traffic gradients;
  std::optional<Diagnostics> activation_diagnostics = {};
  std::optional<Diagnostics> gradient_diagnostics = {};
};

/// Adds up boundary by boundary; one that `sum` does not have yet comes behind the others.
void add_traffic(std::vector<BoundaryTraffic>& sum, const std::vector<BoundaryTraffic>& part);

/// Mean seconds that a stage takes for a micro-batch in training.
struct StageSeconds {
  std::string name;  ///< its first and its last layer
  double forward = 0;
  double backward = 0;
};

/// One line of metrics.jsonl.
struct EpochMetrics {
  int epoch = 0;
  int64_t steps = 0;  ///< of the optimizer
  Score train;
  Evaluation test;
  double lr = 0;       ///< of the epoch's first step
  double seconds = 0;  ///< training only, without evaluation
  double samples_per_second = 0;
  std::optional<double> tokens_per_second = {};  ///< of text: predictions
  double evaluation_seconds = 0;
  double data_wait_seconds = 0;  ///< training steps' wait for the loader
  double bubble_share = 0;       ///< of the processes' training time: no stage computes
  std::vector<BoundaryTraffic> boundaries;
  std::vector<StageSeconds> stages;

  Traffic total(Direction direction) const;
};

/// Numbers that JSON does not have, such as a perplexity beyond all, are null.
nlohmann::json to_json(const Score& score);
nlohmann::json to_json(const Evaluation& evaluation);
nlohmann::json to_json(const EpochMetrics& metrics);
nlohmann::json to_json(const std::vector<BoundaryTraffic>& boundaries);

/// The inverse of to_json(). All throw nlohmann::json::exception for anything else.
Score score_in(const nlohmann::json& json);
EpochMetrics epoch_metrics_of(const nlohmann::json& json);
std::vector<BoundaryTraffic> boundary_traffic_of(const nlohmann::json& json);

/// A line of metrics.jsonl; `name` is the file's and the line's. Throws InputError for anything else.
EpochMetrics parse_epoch(std::string_view line, const std::string& name);

}  // namespace strait
