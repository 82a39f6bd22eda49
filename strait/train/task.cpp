#include "strait/train/task.h"

#include <cmath>

#include "strait/base/kinds.h"
#include "strait/data/kinds.h"
#include "strait/train/loss.h"

namespace strait {
namespace {

double accuracy_of(const StepResult& sums) {
  return 100.0 * static_cast<double>(sums.correct) / static_cast<double>(sums.count);
}

double perplexity_of(const StepResult& sums) {
  return std::exp(sums.loss_sum / static_cast<double>(sums.count));
}

}  // namespace

Task classification() {
  Task task;
  task.name = "classification";
  task.loss = classification_loss;
  task.judged_by = kAccuracy;
  task.metrics = [](const StepResult& sums) {
    return std::map<std::string, double>{{std::string(kAccuracy.name), accuracy_of(sums)}};
  };
  return task;
}

Task language_modeling() {
  Task task;
  task.name = "language modeling";
  task.loss = language_model_loss;
  task.judged_by = kPerplexity;
  task.metrics = [](const StepResult& sums) {
    return std::map<std::string, double>{{std::string(kAccuracy.name), accuracy_of(sums)},
                                         {std::string(kPerplexity.name), perplexity_of(sums)}};
  };
  task.throughput = Throughput::tokens;
  return task;
}

Task regression() {
  Task task;
  task.name = "regression";
  task.loss = regression_loss;
  task.judged_by = kLoss;
  return task;
}

const std::vector<Task>& all_tasks() {
  static const std::vector<Task> kAll = {classification(), language_modeling(), regression()};
  return kAll;
}

const Task& find_task(std::string_view name) { return find_kind(all_tasks(), name, "the task"); }

const Task& task_of(const DataOptions& options) {
  const DataKind& kind = data_kind(options.kind);
  return find_task(kind.task.empty() ? kind.task_of_files(options) : kind.task);
}

double mean_loss(const StepResult& sums) { return sums.loss_sum / static_cast<double>(sums.count); }

Score score_of(const StepResult& sums, const Task& task) {
  return {mean_loss(sums), task.metrics ? task.metrics(sums) : std::map<std::string, double>()};
}

Evaluation evaluation_of(const std::map<EvaluationMode, StepResult>& sums, EvaluationMode asked,
                         const Task& task) {
  Evaluation evaluation{.off = {}, .on = {}, .samples = sums.at(EvaluationMode::off).rows};
  for (const auto& [mode, sum] : sums) evaluation.modes[mode] = score_of(sum, task);
  evaluation.off = evaluation.modes.extract(EvaluationMode::off).mapped();
  evaluation.named = asked;
  evaluation.on = evaluation.modes.at(evaluation.modes.contains(asked) ? asked : EvaluationMode::plain);
  return evaluation;
}

}  // namespace strait
