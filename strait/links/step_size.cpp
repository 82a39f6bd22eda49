#include "strait/links/step_size.h"

#include "strait/codecs/fraction.h"

namespace strait {

std::optional<float> parse_step_size(std::string_view text) {
  const auto value = parse_decimal(text);
  if (!value || *value > 1) return std::nullopt;
  return static_cast<float>(*value);
}

float step_size_argument(OperatorSpec& spec, std::string_view name) {
  constexpr std::string_view kExpected = "a decimal above 0, at most 1";
  const std::string& text = spec.argument(kExpected);
  const std::optional<float> size = parse_step_size(text);
  if (!size || *size == 0) spec.reject(name, text, kExpected);
  return *size;
}

}  // namespace strait
