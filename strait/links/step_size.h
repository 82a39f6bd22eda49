#pragma once

#include <optional>
#include <string_view>

namespace strait {

/// A number from 0 to 1, written as a decimal without an exponent such as 0.5, rounded to float32. Nothing for
/// any other text.
std::optional<float> parse_step_size(std::string_view text);

}  // namespace strait
