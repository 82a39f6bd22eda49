#include "cli/report_watch.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/output.h"
#include "cli/page_server.h"
#include "cli/step_times.h"
#include "strait/base/error.h"
#include "strait/base/exit_status.h"
#include "strait/base/stop_signal.h"
#include "strait/base/text.h"
#include "strait/report/changes.h"
#include "strait/report/writers.h"

namespace strait::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kBetweenLooks = 1s;

PageServer listen(uint16_t port) {
  try {
    return PageServer(port);
  } catch (const Error& error) {
    throw InputError("--port {}: cannot listen at 127.0.0.1: {}", port, error.what());
  }
}

/// Keeps what the server has up to date with the folders.
class ServedReport {
 public:
  ServedReport(PageServer& server, const std::vector<std::filesystem::path>& folders, std::string title)
      : server_(server),
        folders_(folders),
        title_(std::move(title)),
        files_(report::files_of(folders)),
        begun_(std::chrono::system_clock::now().time_since_epoch().count()) {
    make();
  }

  /// Makes the page anew where files have changed since the last look.
  void look() {
    std::string files = report::files_of(folders_);
    if (files == files_) return;
    files_ = std::move(files);
    try {
      make();
    } catch (const InputError& error) {
      show(fmt::format("strait: {}\n", one_line(error.what())));
      set_state(error.what());
    }
  }

 private:
  /// Versions of another start differ, so that a page that was left open sees that.
  std::string version() const { return fmt::format("{}-{}", begun_, made_); }

  void make() {
    auto tables = report::read_tables(folders_);
    times_.add_to(tables);
    ++made_;
    server_.set("/", {.type = "text/html; charset=utf-8",
                      .content = report::to_html(tables, {.title = title_, .version = version()})});
    set_state("");
  }

  void set_state(const std::string& error) {
    const nlohmann::json state = {{"version", version()}, {"error", one_line(error)}};
    server_.set("/state.json",
                {.type = "application/json",
                 .content = state.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)});
  }

  PageServer& server_;
  const std::vector<std::filesystem::path>& folders_;
  std::string title_;
  std::string files_;  // as they were before they were read last
  StepTimes times_;
  int64_t begun_;
  int made_ = 0;
};

}  // namespace

int watch_report(const std::vector<std::filesystem::path>& folders, const std::string& title, uint16_t port) {
  catch_stop_signals();
  PageServer server = listen(port);
  ServedReport served(server, folders, title);
  print(fmt::format("http://127.0.0.1:{}/ (Ctrl-C ends it)\n", server.port()));
  flush_output();
  while (!stop_requested()) {
    server.serve(kBetweenLooks);
    served.look();
  }
  return kStopped;
}

}  // namespace strait::cli
