#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "cli/output.h"
#include "cli/verbs.h"
#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/report/writers.h"

namespace strait::cli {
namespace {

using std::filesystem::path;

struct ReportFlags {
  std::vector<path> folders;
  std::string out = "report.html";
  std::string title;
  std::optional<std::string> latex;  ///< empty: beside the page
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

int run_report(const ReportFlags& flags) {
  const path page = flags.out;
  if (page.extension() != ".html")
    throw InputError("--out: expected a name that ends in .html, found \"{}\"", flags.out);
  const auto latex = latex_file(flags, page);
  const auto tables = report::read_tables(flags.folders);
  if (latex) replace_file(*latex, report::to_latex(tables));
  replace_file(beside(page, ".md"), report::to_markdown(tables, flags.title));
  replace_file(beside(page, ".csv"), report::results_csv(tables));
  replace_file(beside(page, "-bytes.csv"), report::bytes_csv(tables));
  replace_file(page, report::to_html(tables, flags.title));
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
  verb->add_option("--title", flags->title,
                   "Of the page (default: the sweep's title, or the names of the runs)")
      ->type_name("TEXT");
  verb->add_option(
          "--latex", flags->latex,
          "The tables of results for LaTeX with booktabs too, into this file (default: beside the page)")
      ->type_name("FILE.tex")
      ->expected(0, 1);
  verb->callback([&action, flags] { action = [flags] { return run_report(*flags); }; });
}

}  // namespace strait::cli
