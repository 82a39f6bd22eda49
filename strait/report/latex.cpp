#include <fmt/format.h>
#include <fmt/ranges.h>

#include "strait/base/text.h"
#include "strait/report/text_table.h"
#include "strait/report/writers.h"

namespace strait::report {
namespace {

/// A character of a name as LaTeX prints it; empty where it stands for itself.
std::string_view latex_of(char c) {
  switch (c) {
    case '\\':
      return "\\textbackslash{}";
    case '^':
      return "\\textasciicircum{}";
    case '~':
      return "\\textasciitilde{}";
    case '<':
      return "\\textless{}";
    case '>':
      return "\\textgreater{}";
    case '|':
      return "\\textbar{}";
    case '"':
      return "\\textquotedbl{}";
    default:
      return "";
  }
}

std::string replaced(std::string text, std::string_view what, std::string_view instead) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += instead.size()) {
    text.replace(at, what.size(), instead);
  }
  return text;
}

/// Whether LaTeX makes another sign of the two, as a dash of two hyphens.
bool is_ligature(char first, char second) {
  if (second == '`' && (first == '?' || first == '!')) return true;
  return first == second && std::string_view("-'`,").find(second) != std::string_view::npos;
}

/// A text as it is read: no character of it is a command, a part of the one before it, or ends a cell.
std::string latex_escaped(std::string_view text) {
  std::string result;
  char before = 0;
  for (const char c : one_line(text)) {
    const bool is_argument = before == 0 && (c == '[' || c == '*');  // of the end of the last row
    if (is_argument || is_ligature(before, c)) result += "{}";
    before = c;
    if (const auto command = latex_of(c); !command.empty()) {
      result += command;
    } else {
      if (std::string_view("{}$&#%_").find(c) != std::string_view::npos) result += '\\';
      result += c;
    }
  }
  return replaced(replaced(replaced(result, "–", "--"), "±", "$\\pm$"), "×", "$\\times$");
}

/// `59.6`, `1,234`, `5.18e+21` or `8.0×` in mathematics.
std::string mathematics(std::string text) {
  if (const size_t power = text.find("e+"); power != std::string::npos) {
    text = fmt::format("{} \\cdot 10^{{{}}}", text.substr(0, power), text.substr(power + 2));
  }
  return replaced(replaced(text, ",", "{,}"), "×", "\\times");
}

/// A cell of a column of numbers, from the text that the other forms have.
std::string number_cell(const std::string& text) {
  constexpr std::string_view kSpread = " ± ";
  constexpr std::string_view kSingle = " (n = 1)";
  if (const size_t at = text.find(kSpread); at != std::string::npos) {
    return fmt::format("${} \\pm {}$", mathematics(text.substr(0, at)),
                       mathematics(text.substr(at + kSpread.size())));
  }
  if (text.ends_with(kSingle)) {
    return fmt::format("${}$ ($n = 1$)", mathematics(text.substr(0, text.size() - kSingle.size())));
  }
  const bool is_number = text.find_first_not_of("0123456789.,-e+×") == std::string::npos;
  return is_number ? fmt::format("${}$", mathematics(text)) : latex_escaped(text);
}

std::string tabular_line(const std::vector<std::string>& cells) {
  return fmt::format("{} \\\\\n", fmt::join(cells, " & "));
}

/// Groups over their columns, with a rule under each, and the columns' own heads.
std::string heads(const TextTable& table) {
  std::vector<std::string> groups;
  std::vector<std::string> labels;
  std::string rules;
  for (size_t i = 0; i < table.columns.size();) {
    const std::string& group = table.columns[i].group;
    size_t end = i + 1;
    while (!group.empty() && end < table.columns.size() && table.columns[end].group == group) ++end;
    groups.push_back(
        group.empty() ? "" : fmt::format("\\multicolumn{{{}}}{{c}}{{{}}}", end - i, latex_escaped(group)));
    if (!group.empty()) rules += fmt::format("\\cmidrule(lr){{{}-{}}}", i + 1, end);
    for (; i < end; ++i) labels.push_back(latex_escaped(table.columns[i].label));
  }
  return tabular_line(groups) + rules + "\n" + tabular_line(labels);
}

std::string latex_table(const Table& table) {
  // One decimal of a percentage is what papers print.
  const TextTable text = result_table(table, metric_of(table).unit == "%" ? 1 : 2);
  std::string columns;
  for (const auto& column : text.columns) columns += column.is_number ? 'r' : 'l';
  std::string rows;
  for (const auto& row : text.rows) {
    std::vector<std::string> cells;
    for (size_t i = 0; i < row.size(); ++i) {
      cells.push_back(text.columns[i].is_number ? number_cell(row[i]) : latex_escaped(row[i]));
    }
    rows += tabular_line(cells);
  }
  return fmt::format(
      "\\begin{{table}}\n\\centering\n\\caption{{{}}}\n\\begin{{tabular}}{{{}}}\n\\toprule\n{}\\midrule\n{}"
      "\\bottomrule\n\\end{{tabular}}\n\\end{{table}}\n",
      latex_escaped(table.title), columns, heads(text), rows);
}

}  // namespace

std::string to_latex(const std::vector<Table>& tables) {
  std::string text = "% Made by strait report. Needs \\usepackage{booktabs} and \\usepackage[T1]{fontenc}.\n";
  for (const auto& table : tables) text += "\n" + latex_table(table);
  return text;
}

}  // namespace strait::report
