#include "cli/config_argument.h"

#include <CLI/CLI.hpp>
#include <system_error>

namespace strait::cli {

CLI::Option* add_config_argument(CLI::App& verb, std::string& argument, const std::string& aside) {
  return verb.add_option("config", argument, "Configuration file, or the folder of a run that has one" + aside)
      ->type_name("CONFIG.toml");
}

std::string weights_asked(const std::string& flag, const std::string& argument) {
  std::error_code ignored;
  const auto inside = std::filesystem::path(argument) / "model.safetensors";
  return flag.empty() && std::filesystem::is_regular_file(inside, ignored) ? inside.string() : flag;
}

std::filesystem::path config_file(const std::string& argument) {
  std::error_code ignored;
  const auto inside = std::filesystem::path(argument) / "config.toml";
  return !argument.empty() && std::filesystem::is_regular_file(inside, ignored)
             ? inside
             : std::filesystem::path(argument);
}

}  // namespace strait::cli
