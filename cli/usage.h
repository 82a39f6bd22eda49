#pragma once

#include <span>
#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11 chose it
class App;
}

namespace strait::cli {

/// Names the first verb or flag of a command line that does not exist, with the nearest one that does; empty
/// where all do.
std::string unknown_word(const CLI::App& app, std::span<const std::string> arguments);

/// What is wrong with a command line that CLI11 refused: names the first verb or flag that does not
/// exist, with the nearest one that does, or says which verb is missing. Empty when it is neither, and
/// CLI11's own message has to do.
std::string explain_usage(const CLI::App& app, std::span<const std::string> arguments);

}  // namespace strait::cli
