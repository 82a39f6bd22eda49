#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "strait/base/text.h"
#include "strait/report/text_table.h"
#include "strait/report/writers.h"

namespace strait::report {
namespace {

/// A name as it is read: no character of it ends a cell or a line, or is taken for markup.
std::string markdown_escaped(std::string_view text) {
  std::string result;
  for (const char c : one_line(text)) {
    if (std::string_view("\\`*_[]<>|&#~$").find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

std::string heading(const TextTable::Column& column) {
  return column.group.empty() ? column.label : column.group + ": " + column.label;
}

std::string table_line(const std::vector<std::string>& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

std::string table_of(const TextTable& table) {
  std::vector<std::string> headings;
  std::vector<std::string> rules;
  for (const auto& column : table.columns) {
    headings.push_back(markdown_escaped(heading(column)));
    rules.emplace_back(column.is_number ? "---:" : "---");
  }
  std::string text = table_line(headings) + table_line(rules);
  for (const auto& row : table.rows) {
    std::vector<std::string> cells(row.size());
    std::ranges::transform(row, cells.begin(), markdown_escaped);
    text += table_line(cells);
  }
  return text;
}

/// The grid of a sweep that varies two keys, with compression on and off; nothing where there is none.
std::string crossed_tables(const Table& table) {
  const auto grid = find_grid(table);
  if (!grid) return "";
  const Metric metric = metric_of(table);
  std::string text;
  for (const auto& scoring : scorings_of(table)) {
    if (scoring.name != "off" && scoring.name != "on") continue;
    text += fmt::format("\n### {}: {} × {}, {}, last epoch, {}\n\n{}", markdown_escaped(table.title),
                        markdown_escaped(grid->down), markdown_escaped(grid->across), metric.name,
                        markdown_escaped(scoring.label), table_of(crossed_table(*grid, metric, scoring)));
  }
  return text;
}

constexpr std::string_view kMeaning =
    "*off* and *on* are the scores on the test set with compression off and on at the boundaries. What *on* is "
    "stands beside it: *plain*, the bare operator; *frozen*, the feedback scheme with its state as training "
    "left it; or *live*, the scheme with its state moving from batch to batch of the test set. *Best* is the "
    "best test score over all epochs and seeds, chosen separately for off and on; it is selected on the "
    "test "
    "set, so it is optimistic, unlike the mean and standard error of the last epoch. n = 1: one seed, no "
    "standard error. Means are over the seeds that are done. Ratio is uncompressed over wire bytes of the last "
    "epoch, headers included.\n";

}  // namespace

std::string to_markdown(const std::vector<Table>& tables, const std::string& title) {
  const Origins origins = origins_of(tables);
  std::string text =
      fmt::format("# {}\n\n{}\n", markdown_escaped(title.empty() ? title_of(tables) : title), kMeaning);
  text += fmt::format("- Runs written: {}\n- Code: {}\n- Machine: {}\n", origins.days,
                      markdown_escaped(fmt::format("{}", fmt::join(origins.code_versions, "; "))),
                      markdown_escaped(fmt::format("{}", fmt::join(origins.machines, "; "))));
  for (const auto& table : tables) {
    text += fmt::format("\n## {}\n\n{}", markdown_escaped(table.title), table_of(result_table(table)));
    text += crossed_tables(table);
    const TextTable traffic = traffic_table(table);
    if (!traffic.rows.empty()) {
      text += fmt::format("\n### {}: bytes at each boundary\n\n{}", markdown_escaped(table.title),
                          table_of(traffic));
    }
  }
  return text;
}

}  // namespace strait::report
