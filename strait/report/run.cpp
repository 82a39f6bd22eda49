#include "strait/report/run.h"

#include <array>
#include <limits>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/base/text.h"
#include "strait/report/json_reader.h"

namespace strait::report {
namespace {

using std::filesystem::path;

constexpr std::array<std::string_view, 6> kStatusNames = {"waiting", "running",  "stopped",
                                                          "done",    "diverged", "failed"};

void add_number(const JsonReader& from, const std::string& key, const std::string& name,
                std::map<std::string, double>& to) {
  if (const auto value = from.optional_number(key)) to.emplace(name, *value);
}

Scores read_scores(const JsonReader& scores) {
  Scores result;
  for (const auto& key : scores.keys()) add_number(scores, key, key, result);
  return result;
}

std::map<std::string, double> read_diagnostics(const JsonReader& diagnostics) {
  std::map<std::string, double> result;
  for (const auto& key : diagnostics.keys()) {
    if (key == "messages") continue;
    if (key != "quantiles") {
      add_number(diagnostics, key, key, result);
      continue;
    }
    const JsonReader quantiles = diagnostics.at(key);
    for (const auto& share : quantiles.keys()) add_number(quantiles, share, "quantile " + share, result);
  }
  return result;
}

Traffic read_traffic(const JsonReader& traffic) {
  Traffic result{traffic.number("raw_bytes"), traffic.number("wire_bytes"), {}};
  if (traffic.has("diagnostics")) result.diagnostics = read_diagnostics(traffic.at("diagnostics"));
  return result;
}

std::string read_evaluation(const JsonReader& test) {
  std::string name = test.text("evaluation");
  if (name != "plain" && name != "frozen" && name != "live") {
    test.at("evaluation").fail("\"plain\", \"frozen\" or \"live\"");
  }
  return name;
}

std::vector<StepScores> read_evaluations(const JsonReader& evaluations) {
  std::vector<StepScores> all;
  for (size_t i = 0; i < evaluations.size(); ++i) {
    const JsonReader test = evaluations.at(i).at("test");
    all.push_back({static_cast<int>(evaluations.at(i).count("step")), read_scores(test.at("off")),
                   read_scores(test.at("on"))});
  }
  return all;
}

Epoch read_epoch(const JsonReader& line) {
  Epoch epoch;
  epoch.number = static_cast<int>(line.count("epoch", std::numeric_limits<int>::max()));
  epoch.steps = line.number("steps");
  epoch.seconds = line.number("seconds") + line.number("evaluation_seconds");
  epoch.train_loss = line.optional_number("train_loss");
  const JsonReader test = line.at("test");
  epoch.off = read_scores(test.at("off"));
  epoch.on = read_scores(test.at("on"));
  if (test.has("evaluation")) epoch.evaluation = read_evaluation(test);
  epoch.plain = test.has("plain") ? read_scores(test.at("plain")) : epoch.on;  // older runs have on alone
  if (test.has("frozen")) epoch.frozen = read_scores(test.at("frozen"));
  if (test.has("live")) epoch.live = read_scores(test.at("live"));
  if (line.has("evaluations")) epoch.evaluations = read_evaluations(line.at("evaluations"));
  const JsonReader boundaries = line.at("boundaries");
  for (size_t i = 0; i < boundaries.size(); ++i) {
    const JsonReader boundary = boundaries.at(i);
    epoch.boundaries.push_back({boundary.text("name"), read_traffic(boundary.at("activations")),
                                read_traffic(boundary.at("gradients"))});
  }
  return epoch;
}

/// The lines that are complete. What follows the last end of line is one that is being written, or that a
/// killed run left; a run that is done has none.
std::vector<Epoch> parse_epochs(std::string_view text, const path& file, Status status) {
  const auto lines = split(text, '\n');
  std::vector<Epoch> epochs;
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    const JsonText line(lines[i], fmt::format("{}:{}", file.string(), i + 1));
    epochs.push_back(read_epoch(line.root()));
  }
  if (status == Status::done && !lines.back().empty()) {
    throw InputError("{}:{}: ends inside a line", file.string(), lines.size());
  }
  return epochs;
}

void parse_status(std::string_view text, const path& file, Run& run) {
  constexpr double kYear10000 = 253402300800;  // in seconds since 1970
  const JsonText parsed(text, file.string());
  const JsonReader status = parsed.root();
  const auto named = status_named(status.text("status"));
  if (!named) status.at("status").fail("a status of a run");
  run.status = *named;
  run.name = status.text("name");
  run.seed = status.count("seed");
  run.error = status.optional_text("error");
  run.config_hash = status.text("config_hash");
  run.code_version = status.text("code_version");
  run.machine = status.text("machine");
  run.updated = status.number("updated");
  if (!(run.updated >= 0 && run.updated < kYear10000)) {
    status.at("updated").fail("seconds since 1970, before the year 10000");
  }
  run.epochs_planned = status.count("epochs");
}

}  // namespace

std::string_view to_string(Status status) { return kStatusNames.at(static_cast<size_t>(status)); }

std::optional<Status> status_named(std::string_view name) {
  for (size_t i = 0; i < kStatusNames.size(); ++i) {
    if (kStatusNames[i] == name) return static_cast<Status>(i);
  }
  return std::nullopt;
}

bool is_run(const path& folder) { return std::filesystem::is_regular_file(folder / "status.json"); }

Run read_run(const path& folder) {
  return parse_run(folder, {.status = read_whole(folder / "status.json", kJsonBytesMost),
                            .config = read_whole(folder / "config.toml", kConfigBytesMost),
                            .metrics = read_whole(folder / "metrics.jsonl", kMetricsBytesMost)});
}

Run parse_run(const path& folder, RunTexts texts) {
  Run run;
  run.folder = folder.filename().string();
  parse_status(texts.status, folder / "status.json", run);
  run.config = std::move(texts.config);
  run.epochs = parse_epochs(texts.metrics, folder / "metrics.jsonl", run.status);
  return run;
}

}  // namespace strait::report
