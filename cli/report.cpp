#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "cli/output.h"
#include "cli/output_file.h"
#include "cli/report_watch.h"
#include "cli/step_times.h"
#include "cli/verbs.h"
#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/report/writers.h"

namespace strait::cli {
namespace {

using std::filesystem::path;

struct ReportFlags {
  std::vector<path> folders;
  std::optional<std::string> out;
  std::string title;
  std::optional<std::string> latex;  ///< empty: beside the page
  bool watch = false;
  std::optional<int> port;
};

/// The file beside the page: `out/report-bytes.csv` for `out/report.html`.
path beside(const path& page, const std::string& ending) {
  return page.parent_path() / (page.stem().string() + ending);
}

/// Where the LaTeX goes, if anywhere.
std::optional<path> latex_file(const ReportFlags& flags, const path& page) {
  if (!flags.latex) return std::nullopt;
  if (flags.latex->empty()) return beside(page, ".tex");
  if (path(*flags.latex).extension() != ".tex")
    throw InputError("--latex: expected a name that ends in .tex, found \"{}\"", *flags.latex);
  return *flags.latex;
}

int run_watch(const ReportFlags& flags) {
  for (const auto& [flag, given] :
       {std::pair("--out", flags.out.has_value()), {"--latex", flags.latex.has_value()}}) {
    if (given) throw InputError("--watch serves the page and writes no file: leave out {}", flag);
  }
  return watch_report(flags.folders, flags.title, static_cast<uint16_t>(flags.port.value_or(0)));
}

int run_report(const ReportFlags& flags) {
  if (flags.watch) return run_watch(flags);
  if (flags.port) throw InputError("--port: expected with --watch alone");
  const path page = flags.out.value_or("report.html");
  if (page.extension() != ".html")
    throw InputError("--out: expected a name that ends in .html, found \"{}\"", page.string());
  const auto latex = latex_file(flags, page);
  if (latex) check_output_file(flags.latex->empty() ? "--out" : "--latex", *latex);
  for (const char* ending : {".html", ".md", ".csv", "-bytes.csv"})
    check_output_file("--out", beside(page, ending));
  auto tables = report::read_tables(flags.folders);
  StepTimes().add_to(tables);
  if (latex) replace_file(*latex, report::to_latex(tables));
  replace_file(beside(page, ".md"), report::to_markdown(tables, flags.title));
  replace_file(beside(page, ".csv"), report::results_csv(tables));
  replace_file(beside(page, "-bytes.csv"), report::bytes_csv(tables));
  replace_file(page, report::to_html(tables, {.title = flags.title}));
  print(fmt::format("{}\n", page.string()));
  return 0;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto* verb = app.add_subcommand(
      "report",
      "Write tables and curves of finished or running runs as a self-contained HTML page that works offline");
  auto flags = std::make_shared<ReportFlags>();
  verb->add_option("folders", flags->folders, "Folders of runs, of sweeps, or of several of those")
      ->required()
      ->type_name("DIR");
  verb->add_option("--out", flags->out,
                   "The page; the same tables go beside it as .md, .csv and -bytes.csv (default: report.html)")
      ->type_name("FILE.html");
  verb->add_option("--title", flags->title, "Of the page (default: the titles of its tables)")
      ->type_name("TEXT");
  verb->add_option(
          "--latex", flags->latex,
          "The tables of results for LaTeX with booktabs too, into this file (default: beside the page)")
      ->type_name("FILE.tex")
      ->expected(0, 1);
  verb->add_flag("--watch", flags->watch,
                 "Serve the page at 127.0.0.1 instead of writing it; it follows its runs until Ctrl-C");
  verb->add_option("--port", flags->port, "Where --watch serves (default: any free port)")
      ->type_name("N")
      ->check(CLI::Range(1, 65535));
  verb->callback([&action, flags] { action = [flags] { return run_report(*flags); }; });
}

}  // namespace strait::cli
