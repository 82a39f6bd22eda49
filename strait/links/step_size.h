#pragma once

#include <optional>
#include <string_view>

#include "strait/codecs/spec.h"

namespace strait {

/// A number from 0 to 1, written as a decimal without an exponent such as 0.5, rounded to float32. Nothing for
/// any other text.
std::optional<float> parse_step_size(std::string_view text);

/// The argument `name` of a spec, such a number above 0. Throws InputError.
float step_size_argument(OperatorSpec& spec, std::string_view name);

}  // namespace strait
