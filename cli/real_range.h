#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

namespace strait::cli {

/// A flag's check that its value is a number from `low` to `high`. CLI::Range lets NaN through.
inline CLI::Validator real_from_to(double low, double high) {
  const std::string range = fmt::format("{} to {}", low, high);
  const auto check = [=](const std::string& text) -> std::string {
    double value = 0;
    const bool is_number = CLI::detail::lexical_cast(text, value);
    return is_number && value >= low && value <= high ? ""
                                                      : fmt::format("Value {} not in range {}", text, range);
  };
  return {check, fmt::format("FLOAT in [{} - {}]", low, high)};
}

}  // namespace strait::cli
