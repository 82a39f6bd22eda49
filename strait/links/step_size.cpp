#include "strait/links/step_size.h"

#include <cctype>
#include <charconv>

namespace strait {

std::optional<float> parse_step_size(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text.front())) == 0) return std::nullopt;
  const char* end = text.data() + text.size();
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  if (error != std::errc() || rest != end || value > 1) return std::nullopt;
  return static_cast<float>(value);
}

}  // namespace strait
