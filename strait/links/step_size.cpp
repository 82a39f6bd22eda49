#include "strait/links/step_size.h"

#include "strait/codecs/fraction.h"

namespace strait {

std::optional<float> parse_step_size(std::string_view text) {
  const auto value = parse_decimal(text);
  if (!value || *value > 1) return std::nullopt;
  return static_cast<float>(*value);
}

}  // namespace strait
