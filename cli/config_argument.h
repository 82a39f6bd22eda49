#pragma once

#include <filesystem>
#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11 chose it
class App;
class Option;
}  // namespace CLI

namespace strait::cli {

/// Adds the argument CONFIG.toml, which may be the folder of a run; `aside` follows what --help says of it.
CLI::Option* add_config_argument(CLI::App& verb, std::string& argument, const std::string& aside = "");

/// The weights that a verb is asked about: those of its flag --weights, or else those in the run's folder that
/// the argument names; empty where there are neither.
std::string weights_asked(const std::string& flag, const std::string& argument);

/// The file that the argument names: of a folder that has a config.toml, as a run's has, that one. Anything
/// else is the file's name itself, whose reader says what is wrong with it.
std::filesystem::path config_file(const std::string& argument);

}  // namespace strait::cli
