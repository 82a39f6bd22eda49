#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "strait/boundary/evaluation.h"
#include "strait/boundary/traffic.h"
#include "strait/run/metric.h"
#include "strait/wire/frame.h"

namespace strait {

/// Means over the predictions for a set of samples.
struct Score {
  double loss = 0;                             ///< cross-entropy in nats, or what the task takes
  std::map<std::string, double> metrics = {};  ///< those of the task, by Metric::name; one may be infinite

  /// The value of a metric that the score has, or the loss.
  double at(const Metric& metric) const {
    return metric.name == kLoss.name ? loss : metrics.at(std::string(metric.name));
  }
};

/// The first of all_metrics() that the score has; null where it has none, and the loss stands for itself.
const Metric* judge_of(const Score& score);

/// Whether it is the better one of the same network, by judge_of(): where that is a function of the loss, or
/// there is none, by the loss.
bool is_better(const Score& score, const Score& than);

/// The same samples without and with compression at the boundaries.
struct Evaluation {
  Score off;                                     ///< with compression off
  Score on;                                      ///< in the mode `named`
  int64_t samples = 0;                           ///< that were scored
  EvaluationMode named = EvaluationMode::plain;  ///< the mode of `on`: compression.evaluation

  /// In each mode with compression: plain, and where activations have feedback frozen and live, unless the
  /// state of the links is not known.
  std::map<EvaluationMode, Score> modes = {};
};

/// An evaluation within an epoch.
struct StepEvaluation {
  uint64_t step = 0;  ///< optimizer steps taken before it, of the whole training
  Evaluation test;    ///< of the test set
};

/// A line of steps.jsonl: what happened since the one before it.
struct StepMetrics {
  uint64_t step = 0;              ///< optimizer steps taken, of the whole training
  int epoch = 0;                  ///< that this step was in
  int64_t steps = 0;              ///< that the line sums up
  Score train;                    ///< over their samples, in training mode
  double lr = 0;                  ///< of the last of them
  double seconds = 0;             ///< of training
  double samples_per_second = 0;  ///< in training
  double raw_bytes = 0;           ///< of the tensors, over all boundaries, both directions
  double wire_bytes = 0;          ///< of the frames, likewise
  double bubble_share = 0;        ///< of the processes' training time: no stage computes
};

/// What crossed a boundary in training, and what was measured of it.
struct BoundaryTraffic {
  std::string name;                                        ///< the layer after which the network is cut
  Traffic activations;                                     ///< forward
  Traffic gradients;                                       ///< backward
  std::optional<Diagnostics> activation_diagnostics = {};  ///< where compression.diagnostics asks for them
  std::optional<Diagnostics> gradient_diagnostics = {};    ///< likewise
};

/// Adds up boundary by boundary; one that `sum` does not have yet comes behind the others.
void add_traffic(std::vector<BoundaryTraffic>& sum, const std::vector<BoundaryTraffic>& part);

/// Mean seconds that a stage takes for a micro-batch in training.
struct StageSeconds {
  std::string name;     ///< its first and its last layer
  double forward = 0;   ///< without the exchange of messages
  double backward = 0;  ///< likewise
};

/// A way between two processes that is not as it should be.
struct LinkMetrics {
  int rank = 0;          ///< of one
  int peer = 0;          ///< of the other
  bool relayed = false;  ///< neither can reach the other: messages go through rank 0
  int64_t outages = 0;   ///< times in the epoch when the connection was lost, and came back
  double seconds = 0;    ///< that they lasted
};

/// How long training would have taken over a network of the configuration's, by simulation.
struct NetworkMetrics {
  std::string name;         ///< of the entry of [[networks]]
  double step_seconds = 0;  ///< of a step of the optimizer in this epoch
  double seconds = 0;       ///< of all training steps from the run's beginning to the end of this epoch
};

/// A link as it was when codecs were chosen.
struct ChosenLink {
  std::optional<double> bytes_per_second;  ///< nothing where it is no limit
  double latency_seconds = 0;              ///< of every message
};

/// What was chosen for one direction of a boundary.
struct ChosenCodec {
  std::string codec;  ///< its spec; of a direction that is not chosen the one that it has
  std::optional<double> relative_error = {};   ///< of the message on which it was tried, if it was
  std::map<std::string, double> cosines = {};  ///< of gradients chosen by time, those of the ladder's codecs
  ChosenLink link = {};                        ///< that its messages cross
};

/// What was chosen for a boundary.
struct ChosenCodecs {
  std::string boundary;     ///< the layer after which the network is cut
  ChosenCodec activations;  ///< forward
  ChosenCodec gradients;    ///< backward
};

/// The codecs that training chose for itself (codec "auto").
struct CodecChoice {
  uint64_t step = 0;                        ///< optimizer steps taken before it holds, of the whole training
  std::vector<ChosenCodecs> boundaries;     ///< all, in order
  std::optional<double> step_seconds = {};  ///< that a step is expected to take with them, where time decides
  std::optional<double> step_factor = {};  ///< how many times as many steps they are expected to cost, likewise
  bool watches_gradients = false;  ///< whether codecs that may turn them could gain much before the next choice

  /// Whether codecs were tried on messages; otherwise they are those with which a training begins.
  bool is_tried() const {
    return std::ranges::any_of(boundaries, [](const ChosenCodecs& chosen) {
      return chosen.activations.relative_error.has_value() || chosen.gradients.relative_error.has_value();
    });
  }
};

/// One line of metrics.jsonl.
struct EpochMetrics {
  int epoch = 0;                                 ///< from 0
  int64_t steps = 0;                             ///< of the optimizer
  Score train;                                   ///< over the epoch, in training mode
  std::optional<Evaluation> test;                ///< of the test set after the epoch, where one was due
  double lr = 0;                                 ///< of the epoch's first step
  double seconds = 0;                            ///< training only, without evaluation
  double samples_per_second = 0;                 ///< in training
  std::optional<double> tokens_per_second = {};  ///< predictions, where the task counts tokens
  double evaluation_seconds = 0;                 ///< of all evaluations of the epoch
  double data_wait_seconds = 0;                  ///< training steps' wait for the loader
  double bubble_share = 0;                       ///< of the processes' training time: no stage computes
  std::vector<BoundaryTraffic> boundaries;       ///< from the input to the output
  std::vector<StageSeconds> stages;              ///< in order
  std::vector<StepEvaluation> evaluations = {};  ///< where train.evaluate_every asks for them
  std::vector<LinkMetrics> links = {};           ///< those between processes of which there is something to say
  std::vector<NetworkMetrics> networks = {};     ///< those of the configuration
  std::vector<CodecChoice> choices = {};         ///< that held in the epoch, in order, where codecs are chosen

  /// The sum over the boundaries of one direction.
  Traffic total(Direction direction) const;
};

}  // namespace strait
