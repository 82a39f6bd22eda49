#include "cli/flag_checks.h"

#include <fmt/format.h>

#include "strait/base/text.h"

namespace strait::cli {

CLI::Validator not_empty() {
  return {
      [](const std::string& text) -> std::string { return text.empty() ? "expected a value, found none" : ""; },
      ""};
}

CLI::Validator number_from_to(double low, double high) {
  const auto complaint = [low, high](const std::string& text) -> std::string {
    const auto number = parse_number<double>(text);
    if (number && *number >= low && *number <= high) return "";
    return fmt::format("expected a number from {:g} to {:g}, found \"{}\"", low, high, text);
  };
  return {complaint, fmt::format("in [{:g} - {:g}]", low, high)};
}

}  // namespace strait::cli
