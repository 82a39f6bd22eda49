#pragma once

#include <string>
#include <vector>

#include "strait/report/tables.h"

namespace strait::report {

/// The title of a report: that of its only table, those of two, or the first one and how many more there are.
std::string title_of(const std::vector<Table>& tables);

/// The tables as Markdown, with what the numbers are, under that title; an empty one is title_of(tables).
std::string to_markdown(const std::vector<Table>& tables, const std::string& title = "");

/// The tables of results for LaTeX with booktabs, each as a table of its own.
std::string to_latex(const std::vector<Table>& tables);

/// A line per variant, with numbers as they are (RFC 4180; an empty field was not measured).
std::string results_csv(const std::vector<Table>& tables);

/// A line per variant, boundary and direction: raw and wire bytes per average step of the last epoch.
std::string bytes_csv(const std::vector<Table>& tables);

/// How a page is made.
struct PageOptions {
  std::string title = {};  ///< empty: title_of() its tables
  std::string version =
      {};  ///< of a page that is served, which then looks at /state.json of its server for another
};

/// One page with everything in it. It opens without a network and, where it has no version, asks for none.
std::string to_html(const std::vector<Table>& tables, const PageOptions& options = {});

/// What the page's charts are drawn from, as JSON that is safe inside a script element.
std::string page_data(const std::vector<Table>& tables);

}  // namespace strait::report
