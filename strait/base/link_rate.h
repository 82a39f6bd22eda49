#pragma once

#include <limits>
#include <string>
#include <string_view>

namespace strait {

/// One way of a link between two ranks.
struct LinkRate {
  double bytes_per_second = std::numeric_limits<double>::infinity();  ///< that a rank can send, to all others
  double latency_seconds = 0;                                         ///< of every message
};

/// Of a text such as `200Mbps,50ms`, `1Gbps` or `unlimited,20ms`: a rate, and a latency where there is one.
/// Throws InputError that names `what` otherwise.
LinkRate parse_link_rate(std::string_view text, std::string_view what);

/// `200 Mbps with 50 ms latency`, `1 Gbps`, `an unlimited link`.
std::string link_rate_text(const LinkRate& link);

}  // namespace strait
