#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/flag_checks.h"
#include "cli/live_line.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "strait/base/error.h"
#include "strait/base/exit_status.h"
#include "strait/base/stop_signal.h"
#include "strait/base/text.h"
#include "strait/config/config.h"
#include "strait/data/registry.h"

namespace strait::cli {
namespace {

struct DataCommand {
  std::string name;
  std::string root = default_data_root();
  std::string mirror;
};

/// What has been received; a total of 0 is not known.
std::string megabytes_text(uint64_t received, uint64_t total) {
  const auto megabytes = [](uint64_t bytes) { return static_cast<double>(bytes) / 1e6; };
  const std::string of = total == 0 ? "" : fmt::format(" of {:.1f}", megabytes(total));
  return fmt::format("{:.1f}{} MB", megabytes(received), of);
}

int run_get(const DataCommand& command) {
  const OfficialData& data = data_info(command.name);
  catch_stop_signals();
  LiveLine line;
  GetOptions options;
  options.base_url = command.mirror;
  options.download.progress = [&](uint64_t received, uint64_t total) {
    line.draw(fmt::format("{}: {}", data.name, megabytes_text(received, total)));
    return !stop_requested();
  };
  GetResult result;
  try {
    result = get_data(data, command.root, options);
  } catch (const Error&) {
    if (!stop_requested()) throw;
    line.clear();
    print(fmt::format("stopped; the same command fetches {} from the beginning\n", data.name));
    return kStopped;
  }
  std::string text =
      fmt::format("{}: {}\n", data.name, result.present ? "already there" : "fetched and checked");
  for (const auto& file : result.files) text += fmt::format("  {}\n", file.string());
  line.clear();
  print(text);
  return 0;
}

int run_check(const DataCommand& command) {
  const OfficialData& data = data_info(command.name);
  const CheckReport report = check_data(data, command.root);
  std::string text;
  for (const auto& line : report.lines) {
    const char* level = line.level == CheckLevel::ok        ? "ok"
                        : line.level == CheckLevel::differs ? "differs"
                                                            : "error";
    text += fmt::format("{:<8} {}\n", level, line.message);
  }
  print(text);
  const auto wrong = report.first_wrong();
  if (!wrong) return 0;
  const auto right = std::ranges::count(report.lines, CheckLevel::ok, &CheckLine::level);
  throw InputError("{} ({} of the {} files of {} are the official ones)", wrong->message, right,
                   report.lines.size(), data.name);
}

int run_info(const DataCommand& command) {
  const OfficialData& data = data_info(command.name);
  std::string text =
      fmt::format("{}: {}\nsource: {}\nterms: {}\n", data.name, data.title, data.source, data.terms);
  for (const auto& file : data.files) {
    text += fmt::format("file: {}, {} bytes, {} {}\n", file.path, file.bytes, to_string(file.sum.kind),
                        file.sum.hex);
  }
  for (const auto& source : data.downloads) {
    text += fmt::format("address: {}{}, {} {}\n", source.base, source.file, to_string(source.sum.kind),
                        source.sum.hex);
  }
  if (!data.hint.empty()) text += fmt::format("hint: {}\n", data.hint);
  print(text);
  return 0;
}

std::string known_names() {
  std::vector<std::string> names;
  for (const auto& data : official_data()) names.push_back(data.name);
  return list_of(names);
}

/// Adds one of the three and gives the command that its flags fill.
CLI::App* add_verb(CLI::App& data, const char* name, const char* about, int (*run)(const DataCommand&),
                   Action& action, const std::shared_ptr<DataCommand>& command) {
  auto* verb = data.add_subcommand(name, about);
  verb->add_option("name", command->name, "One of: " + known_names())->required()->type_name("NAME");
  verb->callback([&action, run, command] { action = [run, command] { return run(*command); }; });
  return verb;
}

void add_root(CLI::App& verb, DataCommand& command) {
  verb.add_option("--root", command.root, "Folder of the data sets (default: STRAIT_DATA, or data)")
      ->check(not_empty())
      ->type_name("DIR");
}

}  // namespace

void add_data(CLI::App& app, Action& action) {
  auto* data = app.add_subcommand("data", "Fetch, check and describe data sets and pretrained weights");
  data->require_subcommand(1);
  const auto command = std::make_shared<DataCommand>();
  auto* get =
      add_verb(*data, "get", "Fetch the official files and check their sums", &run_get, action, command);
  add_root(*get, *command);
  get->add_option("--mirror", command->mirror, "Address to fetch the files from, in place of the official one")
      ->check(not_empty())
      ->type_name("URL");
  auto* check = add_verb(
      *data, "check",
      "Compare the files with the official ones; status 2 where one differs, though training may take it",
      &run_check, action, command);
  add_root(*check, *command);
  auto* info = add_verb(*data, "info", "Source, terms, files and sums", &run_info, action, command);
  add_root(*info, *command);
}

}  // namespace strait::cli
