#pragma once

#include <optional>
#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11 chose it
class App;
}

namespace strait::cli {

/// Adds --link to a verb, which is short for --set pipeline.link. `link` must outlive it.
void add_link_flag(CLI::App& verb, std::optional<std::string>& link);

/// Throws InputError that names the flag when it has been given a text that is no link.
void check_link_flag(const std::optional<std::string>& link);

}  // namespace strait::cli
