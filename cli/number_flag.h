#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace strait::cli {

/// Nothing where the text is no number.
std::optional<double> number_in(const std::string& text);

/// For the value of a flag that is a number from `low` to `high`. CLI::Range takes nan for one of these.
CLI::Validator number_from_to(double low, double high);

}  // namespace strait::cli
