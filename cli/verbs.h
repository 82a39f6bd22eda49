#pragma once

#include <functional>

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11 chose it
class App;
}

namespace strait::cli {

/// The work that the command line asks for; gives the exit status. A verb only describes its flags when
/// it is added, and its callback sets the action, which runs when the whole line is known to be right.
using Action = std::function<int()>;

/// Whether the program is built with its report (STRAIT_REPORT).
inline constexpr bool kHasReport = STRAIT_HAS_REPORT;

// One function a verb, each in the file of that name.
void add_train(CLI::App& app, Action& action);
void add_eval(CLI::App& app, Action& action);
void add_sweep(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_frontier(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);
void add_codec(CLI::App& app, Action& action);
void add_launch(CLI::App& app, Action& action);
void add_data(CLI::App& app, Action& action);
void add_generate(CLI::App& app, Action& action);
void add_tokenize(CLI::App& app, Action& action);
void add_config(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_keys(CLI::App& app, Action& action);

}  // namespace strait::cli
