#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace strait {

/// Of a time that anybody waits: 100 years, in nanoseconds below 2^63.
inline constexpr double kLongestSeconds = 100.0 * 365 * 24 * 3600;

/// Seconds of a text such as `20ms`, `1.5s`, `300us`, `10m`, `2h` or `0`, at most kLongestSeconds. Throws
/// InputError that names `what` otherwise.
double parse_seconds(std::string_view text, std::string_view what);

/// Bytes per second of the slowest link that makes sense: 1 kbit/s.
inline constexpr double kLeastBandwidth = 125;

/// Bytes per second of a text such as `100Mbps`, `1Gbit/s`, `20mbit`, `12.5MB/s` or `unlimited`, which gives
/// infinity; at least kLeastBandwidth. Prefixes are k, M and G, powers of 1000; a small b is bits, a big B
/// bytes. Throws InputError that names `what` otherwise.
double parse_bandwidth(std::string_view text, std::string_view what);

/// `20 ms`, `1.5 s`, `300 us`: with up to four digits, in the unit that makes it a number from 1 to 1000.
std::string duration_text(double seconds);

/// `1 step`, `11,469 steps`, `2 processes`: a number of things with the name of one, at least 0.
std::string count_text(int64_t count, std::string_view one);

/// `1.2 GB`, `340.0 MB`: units are powers of 1000.
std::string size_text(uint64_t bytes);

/// `100 Mbps`, or `unlimited`.
std::string bandwidth_text(double bytes_per_second);

}  // namespace strait
