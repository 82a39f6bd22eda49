#include <fmt/format.h>
#include <fmt/ranges.h>

#include "strait/report/statistics.h"
#include "strait/report/writers.h"

namespace strait::report {
namespace {

/// A text as a field of RFC 4180. One that a spreadsheet would take for a formula gets an apostrophe in front.
std::string field(std::string_view name) {
  const bool formula = name.find_first_of("=+-@\t\r") == 0;
  std::string text = fmt::format("{}{}", formula ? "'" : "", name);
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

/// All digits that it takes to read the same number again.
std::string field(Value value) { return value ? fmt::format("{}", *value) : ""; }

int runs_of(const Summary& summary, Status status) {
  for (const auto& count : summary.statuses) {
    if (count.status == status) return count.runs;
  }
  return 0;
}

std::string csv_line(const std::vector<std::string>& fields) {
  return fmt::format("{}\r\n", fmt::join(fields, ","));
}

std::vector<std::string> head_of_results() {
  std::vector<std::string> names = {"table",
                                    "variant",
                                    "metric",
                                    "best_off",
                                    "best_on",
                                    "last_off_mean",
                                    "last_off_standard_error",
                                    "last_on_mean",
                                    "last_on_standard_error",
                                    "paper_off",
                                    "paper_on",
                                    "ratio_activations",
                                    "ratio_gradients",
                                    "wire_bytes_per_step",
                                    "seconds",
                                    "seeds",
                                    "seeds_counted"};
  for (const auto status : kStatuses) names.emplace_back(to_string(status));
  names.emplace_back("on_is");
  for (const auto& mode : kModes) {
    names.push_back(fmt::format("best_{}", mode.name));
    names.push_back(fmt::format("last_{}_mean", mode.name));
    names.push_back(fmt::format("last_{}_standard_error", mode.name));
  }
  return names;
}

std::string result_line(const Table& table, const Variant& variant, const Metric& metric) {
  const Summary row = summarise(variant, metric);
  std::vector<std::string> fields = {field(table.name), field(variant.name), std::string(metric.name)};
  for (const Value value : {row.off.best, row.on.best, row.off.last.mean, row.off.last.error, row.on.last.mean,
                            row.on.last.error, variant.published.off, variant.published.on,
                            row.ratio_activations, row.ratio_gradients, row.wire_bytes_per_step, row.seconds}) {
    fields.push_back(field(value));
  }
  fields.push_back(fmt::format("{}", variant.runs.size()));
  fields.push_back(fmt::format("{}", row.seeds));
  for (const auto status : kStatuses) fields.push_back(fmt::format("{}", runs_of(row, status)));
  fields.push_back(evaluation_of(variant));
  for (const auto& mode : kModes) {
    const Scored score = scored(variant, metric, mode.scores);
    for (const Value value : {score.best, score.last.mean, score.last.error}) fields.push_back(field(value));
  }
  return csv_line(fields);
}

}  // namespace

std::string results_csv(const std::vector<Table>& tables) {
  std::string text = csv_line(head_of_results());
  for (const auto& table : tables) {
    const Metric metric = metric_of(table);
    for (const auto& variant : table.variants) text += result_line(table, variant, metric);
  }
  return text;
}

std::string bytes_csv(const std::vector<Table>& tables) {
  std::string text =
      csv_line({"table", "variant", "boundary", "direction", "raw_bytes_per_step", "wire_bytes_per_step"});
  for (const auto& table : tables) {
    for (const auto& variant : table.variants) {
      for (const auto& row : step_traffic(variant)) {
        const auto add = [&](std::string_view direction, Value raw, Value wire) {
          text += csv_line({field(table.name), field(variant.name), field(row.boundary), std::string(direction),
                            field(raw), field(wire)});
        };
        add("activations", row.raw_activations, row.wire_activations);
        add("gradients", row.raw_gradients, row.wire_gradients);
      }
    }
  }
  return text;
}

}  // namespace strait::report
