#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <map>

#include "strait/base/error.h"
#include "strait/report/page_files.h"
#include "strait/report/text_table.h"
#include "strait/report/writers.h"

namespace strait::report {
namespace {

std::string html_escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

/// The template with each {{name}} replaced. What is put in is not looked at again.
std::string fill(std::string_view page, const std::map<std::string, std::string, std::less<>>& values) {
  std::string result;
  for (size_t begin; (begin = page.find("{{")) != std::string_view::npos;) {
    const size_t end = page.find("}}", begin);
    const std::string_view name = page.substr(begin + 2, end - begin - 2);
    const auto value = values.find(name);
    STRAIT_CHECK(value != values.end(), "the page has an unknown mark {}", name);
    result.append(page.substr(0, begin)).append(value->second);
    page.remove_prefix(end + 2);
  }
  return result.append(page);
}

/// What a content security policy calls the text: the page runs nothing else.
std::string policy_hash(std::string_view text) {
  std::array<unsigned char, 32> digest{};
  const int made = EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  STRAIT_CHECK(made == 1, "no SHA-256");
  std::array<unsigned char, 45> base64{};
  EVP_EncodeBlock(base64.data(), digest.data(), static_cast<int>(digest.size()));
  return fmt::format("'sha256-{}'", reinterpret_cast<const char*>(base64.data()));
}

/// The attributes of a column's own head, by which it is sorted and compared.
std::string head_attributes(const TextTable::Column& column, size_t index) {
  std::string html = fmt::format(" scope=\"col\" data-column=\"{}\"", index);
  if (!column.measure.empty()) html += fmt::format(" data-measure=\"{}\"", html_escaped(column.measure));
  if (column.is_number) html += " class=\"number\"";
  return html;
}

/// The first row of headings: a group stands over all its columns, a column without a group over both rows.
std::string group_headings(const TextTable& table) {
  std::string html;
  for (size_t i = 0; i < table.columns.size();) {
    const auto& column = table.columns[i];
    size_t end = i + 1;
    if (column.group.empty()) {
      html +=
          fmt::format("<th rowspan=\"2\"{}>{}</th>", head_attributes(column, i), html_escaped(column.label));
    } else {
      while (end < table.columns.size() && table.columns[end].group == column.group) ++end;
      html += fmt::format("<th scope=\"colgroup\" colspan=\"{}\" class=\"group\">{}</th>", end - i,
                          html_escaped(column.group));
    }
    i = end;
  }
  return html;
}

std::string headings(const TextTable& table) {
  std::string second;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const auto& column = table.columns[i];
    if (column.group.empty()) continue;
    second += fmt::format("<th{}>{}</th>", head_attributes(column, i), html_escaped(column.label));
  }
  return fmt::format("<thead><tr>{}</tr><tr>{}</tr></thead>", group_headings(table), second);
}

/// A class for cells that say that something went wrong.
std::string_view cell_class(const TextTable::Column& column, const std::string& cell) {
  if (column.is_number) return " class=\"number\"";
  return cell.find("diverged") != std::string::npos || cell.find("failed") != std::string::npos
             ? " class=\"warn\""
             : "";
}

/// The rows; `name` makes the cell of the row's name.
template <class Name>
std::string rows_of(const TextTable& table, Name name) {
  std::string html;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    html += fmt::format("<tr><th scope=\"row\">{}</th>", name(row, html_escaped(table.rows[row].front())));
    for (size_t i = 1; i < table.columns.size(); ++i) {
      const std::string& cell = table.rows[row][i];
      const Value number = table.numbers[row][i];
      html += fmt::format("<td{}{}>{}</td>", cell_class(table.columns[i], cell),
                          number ? fmt::format(" data-value=\"{}\"", *number) : "", html_escaped(cell));
    }
    html += "</tr>\n";
  }
  return html;
}

/// The grid of a sweep that varies two keys, with compression on and off; nothing where there is none.
std::string crossed_section(const Table& table) {
  const auto grid = find_grid(table);
  if (!grid) return "";
  const Metric metric = metric_of(table);
  const auto plain = [](size_t /*row*/, const std::string& name) { return name; };
  std::string tables;
  const auto scorings = scorings_of(table);
  for (const size_t which : {1, 0}) {
    const TextTable crossed = crossed_table(*grid, metric, scorings[which]);
    tables += fill(page::kCrossed, {{"title", html_escaped(table.title)},
                                    {"metric", std::string(metric.name)},
                                    {"unit", metric.unit.empty() ? "" : fmt::format(", {}", metric.unit)},
                                    {"scoring", html_escaped(scorings[which].label)},
                                    {"headings", headings(crossed)},
                                    {"rows", rows_of(crossed, plain)}});
  }
  return fmt::format("<div class=\"crossing part\">\n<h3>{} × {}</h3>\n{}</div>\n", html_escaped(grid->down),
                     html_escaped(grid->across), tables);
}

/// `heading` stands over the table, whose title may be the page's already.
std::string table_section(const Table& table, size_t index, const std::string& heading) {
  const TextTable results = result_table(table);
  const TextTable traffic = traffic_table(table);
  const auto button = [](size_t row, const std::string& name) {
    return fmt::format("<button type=\"button\" class=\"run\" data-variant=\"{}\">{}</button>", row, name);
  };
  const auto plain = [](size_t /*row*/, const std::string& name) { return name; };
  return fill(page::kTable, {{"index", fmt::format("{}", index)},
                             {"title", html_escaped(table.title)},
                             {"heading", html_escaped(heading)},
                             {"metric", std::string(metric_of(table).name)},
                             {"evaluation", html_escaped(evaluation_of(table))},
                             {"result_headings", headings(results)},
                             {"result_rows", rows_of(results, button)},
                             {"crossed", crossed_section(table)},
                             {"traffic_headings", headings(traffic)},
                             {"traffic_rows", rows_of(traffic, plain)}});
}

std::string runs_text(const std::vector<Table>& tables) {
  std::vector<Status> all;
  for (const auto& table : tables) {
    for (const auto& variant : table.variants) {
      for (const auto& run : variant.runs) all.push_back(run.status);
    }
  }
  return fmt::format("{}: {}", all.size(), status_text(count_statuses(all)));
}

std::string contents(const std::vector<Table>& tables) {
  if (tables.size() < 2) return "";
  std::string html = "<nav aria-label=\"Tables\"><ul>";
  for (size_t i = 0; i < tables.size(); ++i) {
    html += fmt::format("<li><a href=\"#table-{}\">{}</a></li>", i, html_escaped(tables[i].title));
  }
  return html + "</ul></nav>";
}

std::string lines(const std::vector<std::string>& items) {
  std::vector<std::string> safe(items.size());
  std::ranges::transform(items, safe.begin(), html_escaped);
  return fmt::format("{}", fmt::join(safe, "<br>"));
}

}  // namespace

std::string title_of(const std::vector<Table>& tables) {
  if (tables.empty()) return "";
  const std::string& first = tables.front().title;
  if (tables.size() <= 1) return first;
  return fmt::format(
      "{} and {}", first,
      tables.size() == 2 ? tables.back().title : fmt::format("{} more tables", tables.size() - 1));
}

std::string to_html(const std::vector<Table>& tables, const PageOptions& options) {
  const Origins origins = origins_of(tables);
  std::string sections;
  for (size_t i = 0; i < tables.size(); ++i) {
    sections += table_section(tables[i], i, tables.size() == 1 ? "Results" : tables[i].title);
  }
  return fill(
      page::kHtml,
      {{"script_hashes",
        policy_hash(page::kErrors) + " " + policy_hash(page::kChartLibrary) + " " + policy_hash(page::kScript)},
       {"style_hash", policy_hash(page::kStyle)},
       {"title", html_escaped(options.title.empty() ? title_of(tables) : options.title)},
       {"connect", options.version.empty() ? "" : " connect-src 'self';"},
       {"version",
        options.version.empty() ? "" : fmt::format(" data-version=\"{}\"", html_escaped(options.version))},
       {"runs", html_escaped(runs_text(tables))},
       {"days", html_escaped(origins.days)},
       {"code_versions", lines(origins.code_versions)},
       {"machines", lines(origins.machines)},
       {"contents", contents(tables)},
       {"sections", sections},
       {"style", std::string(page::kStyle)},
       {"errors", std::string(page::kErrors)},
       {"chart_library", std::string(page::kChartLibrary)},
       {"data", page_data(tables)},
       {"script", std::string(page::kScript)}});
}

}  // namespace strait::report
