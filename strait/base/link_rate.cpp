#include "strait/base/link_rate.h"

#include <fmt/format.h>

#include <cmath>

#include "strait/base/units.h"

namespace strait {

LinkRate parse_link_rate(std::string_view text, std::string_view what) {
  const size_t comma = text.find(',');
  LinkRate link{.bytes_per_second = parse_bandwidth(text.substr(0, comma), what)};
  if (comma != std::string_view::npos) link.latency_seconds = parse_seconds(text.substr(comma + 1), what);
  return link;
}

std::string link_rate_text(const LinkRate& link) {
  std::string rate =
      std::isinf(link.bytes_per_second) ? "an unlimited link" : bandwidth_text(link.bytes_per_second);
  if (link.latency_seconds == 0) return rate;
  return fmt::format("{} with {} latency", rate, duration_text(link.latency_seconds));
}

}  // namespace strait
