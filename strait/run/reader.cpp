#include "strait/run/reader.h"

#include <sstream>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/base/text.h"
#include "strait/run/metrics_json.h"

namespace strait {

std::vector<EpochMetrics> parse_epochs(std::string_view text, const std::filesystem::path& file, bool is_done) {
  const auto lines = split(text, '\n');
  std::vector<EpochMetrics> epochs;
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    const std::string name = fmt::format("{}:{}", file.string(), i + 1);
    EpochMetrics epoch = parse_epoch(lines[i], name);
    if (!epochs.empty() && epoch.epoch <= epochs.back().epoch) {
      throw InputError("{}: epoch: expected one after {}, found {}", name, epochs.back().epoch, epoch.epoch);
    }
    epochs.push_back(std::move(epoch));
  }
  if (is_done && !lines.back().empty()) {
    throw InputError("{}:{}: ends inside a line", file.string(), lines.size());
  }
  if (is_done && !epochs.empty() && !epochs.back().test) {
    throw InputError("{}:{}: expected the test set's scores in the last epoch, found none", file.string(),
                     epochs.size());
  }
  return epochs;
}

std::vector<EpochMetrics> read_epochs(const std::filesystem::path& folder, bool is_done) {
  const auto path = folder / "metrics.jsonl";
  return parse_epochs(read_whole(path, kMetricsBytesMost), path, is_done);
}

std::vector<StepMetrics> read_steps(const std::filesystem::path& folder) {
  const auto path = folder / "steps.jsonl";
  if (!is_there(path)) return {};
  std::istringstream file(read_whole(path));
  std::vector<StepMetrics> steps;
  for (std::string line; std::getline(file, line) && !file.eof();) {  // the last one may be unfinished
    steps.push_back(parse_step(line, fmt::format("{}:{}", path.string(), steps.size() + 1)));
  }
  return steps;
}

EpochMetrics read_last_epoch(const std::filesystem::path& folder) {
  const auto path = folder / "metrics.jsonl";
  const auto lines = split(read_whole(path, kMetricsBytesMost), '\n');
  if (lines.size() < 2) throw InputError("{}: expected at least one epoch, found none", path.string());
  return parse_epoch(lines[lines.size() - 2], fmt::format("{}:{}", path.string(), lines.size() - 1));
}

bool has_metrics(const std::filesystem::path& folder, const std::vector<std::string>& lines) {
  if (lines.empty()) return true;
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  const auto path = folder / "metrics.jsonl";
  return is_there(path) && read_whole(path).starts_with(text);
}

RunSummary summarise(const std::filesystem::path& folder) {
  RunSummary summary;
  const auto epochs = read_epochs(folder, /*is_done=*/true);
  if (epochs.empty()) {
    throw InputError("{}: expected at least one epoch, found none", (folder / "metrics.jsonl").string());
  }
  summary.test = *epochs.back().test;
  for (const auto& epoch : epochs) {
    summary.train_loss = epoch.train.loss;
    summary.seconds += epoch.seconds + epoch.evaluation_seconds;
    Traffic all = epoch.total(Direction::activation);
    all += epoch.total(Direction::gradient);
    summary.wire_bytes_per_step = static_cast<double>(all.wire_bytes) / static_cast<double>(epoch.steps);
    summary.ratio = all.ratio();
  }
  return summary;
}

}  // namespace strait
