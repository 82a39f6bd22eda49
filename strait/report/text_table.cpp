#include "strait/report/text_table.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <cmath>

namespace strait::report {
namespace {

constexpr std::string_view kMissing = "–";
constexpr double kLarge = 1e12;  // from here on digits tell nothing

/// The number with that many decimals and a comma between thousands.
std::string grouped(double value, int decimals) {
  if (std::abs(value) >= kLarge) return fmt::format("{:.2e}", value);
  std::string text = fmt::format("{:.{}f}", value, decimals);
  const size_t digits = std::min(text.find('.'), text.size());
  const size_t first = text.front() == '-' ? 1 : 0;
  for (size_t at = digits; at > first + 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string text_of(Value value, int decimals, std::string_view unit = "") {
  return value ? grouped(*value, decimals).append(unit) : std::string(kMissing);
}

/// Without a standard error the cell says that there was a single seed.
std::string text_of(const Estimate& value, int decimals) {
  if (!value.mean) return std::string(kMissing);
  if (!value.error) return text_of(value.mean, decimals) + " (n = 1)";
  return fmt::format("{} ± {}", text_of(value.mean, decimals), text_of(value.error, decimals));
}

std::string seconds_text(Value seconds) { return text_of(seconds, seconds && *seconds < 100 ? 1 : 0); }

/// `3`, or `2 of 3` where not all count.
std::string seeds_text(const Variant& variant, const Summary& summary) {
  const auto all = static_cast<int>(variant.runs.size());
  return summary.seeds == all ? fmt::format("{}", all) : fmt::format("{} of {}", summary.seeds, all);
}

std::string bytes_text(Value bytes) { return text_of(bytes, 0); }

std::string day_of(double seconds) {
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

void add_once(std::vector<std::string>& list, const std::string& item) {
  if (!item.empty() && std::ranges::find(list, item) == list.end()) list.push_back(item);
}

/// Appends to the last row.
void add_cell(TextTable& table, std::string text, Value number = std::nullopt) {
  table.rows.back().push_back(std::move(text));
  table.numbers.back().push_back(number);
}

void begin_row(TextTable& table, const std::string& name) {
  table.rows.emplace_back();
  table.numbers.emplace_back();
  add_cell(table, name);
}

/// Takes the columns under a heading out.
void drop_group(TextTable& table, const std::string& group) {
  for (size_t i = table.columns.size(); i-- > 0;) {
    if (table.columns[i].group != group) continue;
    table.columns.erase(table.columns.begin() + static_cast<ptrdiff_t>(i));
    for (auto& row : table.rows) row.erase(row.begin() + static_cast<ptrdiff_t>(i));
    for (auto& row : table.numbers) row.erase(row.begin() + static_cast<ptrdiff_t>(i));
  }
}

/// `, %`, or nothing.
std::string unit_text(const Metric& metric) {
  return metric.unit.empty() ? "" : fmt::format(", {}", metric.unit);
}

/// Of the table of results, with those of published figures.
std::vector<TextTable::Column> result_columns(const Table& table) {
  const Metric metric = metric_of(table);
  const std::string unit = unit_text(metric);
  std::vector<TextTable::Column> columns = {{"", "Variant", false}};
  const auto add_group = [&](const std::string& group, const std::string& measure) {
    for (const auto& [name, label, mode] : scorings_of(table)) {
      columns.push_back({group, label, true, measure.empty() ? "" : fmt::format("{} {}", measure, name)});
    }
  };
  add_group(fmt::format("Best {}{}", metric.name, unit), "");
  add_group(fmt::format("Last epoch, mean ± s.e.{}", unit), "score");
  // Of text both figures are usual.
  if (metric.rises_with_loss) add_group("Loss, last epoch, mean ± s.e.", "loss");
  const std::string paper = fmt::format("Paper{}", unit);
  columns.insert(columns.end(), {{paper, "off"},
                                 {paper, "on"},
                                 {"Ratio", "activ."},
                                 {"Ratio", "grad."},
                                 {"", "Wire bytes per step"},
                                 {"", "Seconds"},
                                 {"", "Seeds"},
                                 {"", "Status", false}});
  return columns;
}

}  // namespace

std::string status_text(const std::vector<StatusCount>& statuses) {
  int all = 0;
  for (const auto& count : statuses) all += count.runs;
  std::string text;
  for (const auto& [status, runs] : statuses) {
    if (runs == all) return std::string(to_string(status));
    text += text.empty() ? fmt::format("{} of {} {}", runs, all, to_string(status))
                         : fmt::format(", {} {}", runs, to_string(status));
  }
  return text;
}

TextTable result_table(const Table& table, int decimals) {
  const Metric metric = metric_of(table);
  const auto scorings = scorings_of(table);
  const std::string paper = fmt::format("Paper{}", unit_text(metric));
  TextTable text;
  text.columns = result_columns(table);
  for (const auto& variant : table.variants) {
    std::vector<Scored> scores;
    scores.reserve(scorings.size());
    for (const auto& scoring : scorings) scores.push_back(scored(variant, metric, scoring.mode));
    begin_row(text, variant.name);
    for (const auto& score : scores) add_cell(text, text_of(score.best, decimals), score.best);
    for (const auto& score : scores) add_cell(text, text_of(score.last, decimals), score.last.mean);
    if (metric.rises_with_loss) {
      for (const auto& score : scores) add_cell(text, text_of(score.loss, 2), score.loss.mean);
    }
    for (const Value value : {variant.published.off, variant.published.on}) {
      add_cell(text, text_of(value, decimals), value);
    }
    const Summary row = summarise(variant, metric);
    for (const Value ratio : {row.ratio_activations, row.ratio_gradients}) {
      add_cell(text, text_of(ratio, 1, "×"), ratio);
    }
    add_cell(text, bytes_text(row.wire_bytes_per_step), row.wire_bytes_per_step);
    add_cell(text, seconds_text(row.seconds), row.seconds);
    add_cell(text, seeds_text(variant, row), row.seeds);
    add_cell(text, status_text(row.statuses));
  }
  const bool published = std::ranges::any_of(table.variants, [](const Variant& variant) {
    return variant.published.off.has_value() || variant.published.on.has_value();
  });
  if (!published) drop_group(text, paper);
  return text;
}

TextTable traffic_table(const Table& table) {
  TextTable text;
  text.columns = {{"", "Variant", false},
                  {"", "Boundary", false},
                  {"Activations, bytes per step", "raw"},
                  {"Activations, bytes per step", "wire"},
                  {"Activations, bytes per step", "ratio"},
                  {"Gradients, bytes per step", "raw"},
                  {"Gradients, bytes per step", "wire"},
                  {"Gradients, bytes per step", "ratio"}};
  for (const auto& variant : table.variants) {
    for (const auto& row : step_traffic(variant)) {
      begin_row(text, variant.name);
      add_cell(text, row.boundary);
      for (const auto& [raw, wire] : {std::pair(row.raw_activations, row.wire_activations),
                                      std::pair(row.raw_gradients, row.wire_gradients)}) {
        const Value ratio = raw && wire && *wire > 0 ? Value(*raw / *wire) : std::nullopt;
        add_cell(text, bytes_text(raw), raw);
        add_cell(text, bytes_text(wire), wire);
        add_cell(text, text_of(ratio, 1, "×"), ratio);
      }
    }
  }
  return text;
}

TextTable crossed_table(const Grid& grid, const Metric& metric, const Scoring& scoring) {
  TextTable text;
  text.columns = {{"", grid.down, false}};
  for (const auto& value : grid.columns) text.columns.push_back({grid.across, value});
  for (size_t row = 0; row < grid.rows.size(); ++row) {
    begin_row(text, grid.rows[row]);
    for (const auto* variant : grid.cells[row]) {
      const Estimate last = variant == nullptr ? Estimate() : scored(*variant, metric, scoring.mode).last;
      add_cell(text, text_of(last, 2), last.mean);
    }
  }
  return text;
}

Origins origins_of(const std::vector<Table>& tables) {
  Origins origins;
  std::vector<double> times;
  for (const auto& table : tables) {
    for (const auto& variant : table.variants) {
      for (const auto& run : variant.runs) {
        add_once(origins.code_versions, run.code_version);
        add_once(origins.machines, run.machine);
        if (run.updated > 0) times.push_back(run.updated);
      }
    }
  }
  if (times.empty()) return origins;
  const auto [first, last] = std::ranges::minmax(times);
  origins.days = day_of(first);
  if (day_of(last) != origins.days) origins.days += " to " + day_of(last);
  return origins;
}

}  // namespace strait::report
