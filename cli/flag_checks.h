#pragma once

#include <CLI/CLI.hpp>

namespace strait::cli {

/// For the value of a flag that names something: a variable of a shell that is not set gives an empty one.
CLI::Validator not_empty();

/// For the value of a flag that is a number from `low` to `high`. CLI::Range takes nan for one of these.
CLI::Validator number_from_to(double low, double high);

}  // namespace strait::cli
