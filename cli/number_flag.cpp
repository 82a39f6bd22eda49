#include "cli/number_flag.h"

#include <fmt/format.h>

#include <charconv>

namespace strait::cli {

std::optional<double> number_in(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

CLI::Validator number_from_to(double low, double high) {
  const auto complaint = [low, high](const std::string& text) -> std::string {
    const auto number = number_in(text);
    if (number && *number >= low && *number <= high) return "";
    return fmt::format("expected a number from {:g} to {:g}, found \"{}\"", low, high, text);
  };
  return {complaint, fmt::format("in [{:g} - {:g}]", low, high)};
}

}  // namespace strait::cli
