#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <sstream>

#include "cli/output.h"
#include "cli/usage.h"
#include "cli/verbs.h"
#include "strait/base/error.h"
#include "strait/base/exit_status.h"
#include "strait/base/host.h"
#include "strait/base/library_variables.h"
#include "strait/base/text.h"
#include "strait/base/utf8.h"
#include "strait/train/runtime.h"

namespace strait::cli {
namespace {

constexpr const char* kAbout =
    "Trains neural networks that are split over pipeline stages and compresses what crosses between them.";
constexpr const char* kFooter =
    "\nExit status: 0 done; 1 failed while running; 2 the command line, a configuration or an input file is "
    "wrong; 3 training diverged; 130 stopped by Ctrl-C, SIGTERM or SIGHUP.";

/// A standard stream that the caller has closed leads nowhere. Otherwise its number would go to the next file
/// that is opened, such as metrics.jsonl, and what is printed would be written into that.
void open_standard_streams() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    if (fcntl(stream, F_GETFD) >= 0) continue;
    if (open("/dev/null", O_RDWR) != stream) std::_Exit(kFailed);  // it takes the lowest number that is free
  }
}

/// A value that a message shows may be as long as the file that holds it.
constexpr size_t kLongestMessage = 4000;

int fail(int status, std::string_view message) {
  std::string line = one_line(message);
  if (line.size() > kLongestMessage) {
    line.resize(well_formed_prefix(std::string_view(line).substr(0, kLongestMessage)));
    line += "...";
  }
  show(fmt::format("strait: {}\n", line));
  return status;
}

/// The command line's words, with `help VERB` as `VERB --help`.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty() || words.front() != "help") return words;
  words.erase(words.begin());
  words.emplace_back("--help");
  return words;
}

int run(int argc, char** argv) {
  const auto words = words_of(argc, argv);
  CLI::App app(kAbout, "strait");
  app.footer(kFooter);
  app.set_version_flag("--version", fmt::format("strait {} (LibTorch {})", code_version(), library_version()));
  app.require_subcommand(1);
  Action action;
  add_train(app, action);
  add_eval(app, action);
  add_launch(app, action);
  add_doctor(app, action);
  add_keys(app, action);
  add_sweep(app, action);
  if constexpr (kHasReport) {
    add_report(app, action);
    add_frontier(app, action);
  }
  add_plan(app, action);
  add_codec(app, action);
  add_data(app, action);
  add_generate(app, action);
  add_tokenize(app, action);
  add_config(app, action);
  app.add_subcommand("help", "Say how a verb is used, as VERB --help does");
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // the library takes them from the back
  } catch (const CLI::Success& help) {
    if (const auto unknown = unknown_word(app, words); !unknown.empty()) return fail(kWrongInput, unknown);
    std::ostringstream out;
    app.exit(help, out, out);
    print(out.str());
    return kDone;
  } catch (const CLI::ParseError& error) {
    const std::string explained = explain_usage(app, words);
    return fail(kWrongInput, explained.empty() ? error.what() : explained);
  }
  return action();
}

/// Says what the exception that is being handled means, and gives its exit status.
int fail_by_exception() {
  try {
    throw;
  } catch (const InputError& error) {
    return fail(kWrongInput, error.what());
  } catch (const NumericError& error) {
    return fail(kDiverged, error.what());
  } catch (const Error& error) {
    return fail(kFailed, error.what());
  } catch (const std::exception& error) {
    return fail(kFailed, reason_text(error));
  }
}

/// For what a thread of LibTorch throws where nobody can catch it, such as the one that listens to the store
/// when the connection is reset.
[[noreturn]] void fail_in_thread() {
  std::_Exit(std::current_exception() ? fail_by_exception() : fail(kFailed, "ended without a reason"));
}

/// The kernel's words and variables come here before any library is initialised.
__attribute__((section(".preinit_array"), used)) void (*const kFirst)(int, char**,
                                                                      char**) = &let_waiting_threads_sleep;

int run_guarded(int argc, char** argv) {
  std::set_terminate(fail_in_thread);
  try {
    const int status = run(argc, argv);
    flush_output();
    return status;
  } catch (const std::exception&) {
    return fail_by_exception();
  }
}

}  // namespace
}  // namespace strait::cli

int main(int argc, char** argv) {
  strait::cli::open_standard_streams();
  strait::choose_blas_kernels(argv);
  // A reader of standard output that goes away, a peer, or a file at its largest is noticed where it is written
  // to.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  return strait::cli::run_guarded(argc, argv);
}
