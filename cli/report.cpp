#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

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
};

/// The file beside the page: `out/report-bytes.csv` for `out/report.html`.
path beside(const path& page, const std::string& ending) {
  return page.parent_path() / (page.stem().string() + ending);
}

int run_report(const ReportFlags& flags) {
  const path page = flags.out;
  if (page.extension() != ".html")
    throw InputError("--out: expected a name that ends in .html, found \"{}\"", flags.out);
  const auto tables = report::read_tables(flags.folders);
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
  verb->callback([&action, flags] { action = [flags] { return run_report(*flags); }; });
}

}  // namespace strait::cli
