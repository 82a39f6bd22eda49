#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "strait/data/dataset.h"
#include "strait/pipeline/executor.h"
#include "strait/run/metrics.h"

namespace strait {

/// What throughput counts beside samples.
enum class Throughput : uint8_t { samples, tokens };

/// What a network is trained to do: the loss, and what its results are called. A data set's kind names one of
/// the list (DataKind::task); a program of its own may make another.
struct Task {
  std::string name;   ///< in the list
  LossFunction loss;  ///< of the last stage's output and the targets
  Metric judged_by;   ///< among `metrics`, or kLoss

  /// What is measured beside the loss: values of the sums over some samples, by the metric's name. May give
  /// nothing; then the network is judged by its loss.
  std::function<std::map<std::string, double>(const StepResult&)> metrics;

  Throughput throughput = Throughput::samples;  ///< tokens: predictions are counted too
};

/// Samples belong to one of several classes each: classification_loss(), accuracy.
Task classification();

/// Each token but a sample's first is predicted from those before it: language_model_loss(), perplexity and
/// accuracy, tokens per second.
Task language_modeling();

/// A sample's numbers are predicted: regression_loss(), which the network is judged by.
Task regression();

/// The list of them, one line each.
const std::vector<Task>& all_tasks();

/// The task of that name. Throws InputError that lists the names.
const Task& find_task(std::string_view name);

/// The one that the options' kind of data names. May read a file; throws InputError.
const Task& task_of(const DataOptions& options);

/// The mean over `count`.
double mean_loss(const StepResult& sums);

/// The means of these sums, and the metrics of the task.
Score score_of(const StepResult& sums, const Task& task);

/// The sums over the test set in each mode, off and plain at least, as scores. Where the mode that is asked for
/// is not among them there is no feedback, and it is the same as plain.
Evaluation evaluation_of(const std::map<EvaluationMode, StepResult>& sums, EvaluationMode asked,
                         const Task& task);

}  // namespace strait
