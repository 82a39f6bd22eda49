#include "strait/base/text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <new>
#include <numeric>

#include "strait/base/error.h"
#include "strait/base/utf8.h"

namespace strait {
namespace {

/// Levenshtein distance in which a swap of two neighbours costs one as well.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  std::iota(cost[0].begin(), cost[0].end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

/// The code point of one well-formed character.
uint32_t code_point(std::string_view character) {
  const auto first = static_cast<uint8_t>(character.front());
  if (character.size() == 1) return first;
  uint32_t code = first & (0x7fU >> character.size());
  for (const char c : character.substr(1)) code = code << 6U | (static_cast<uint8_t>(c) & 0x3fU);
  return code;
}

bool is_for_terminal(uint32_t code) {
  const bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  const bool turns = (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return code == '\n' || code == '\t' || !(is_control || turns);
}

}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0;;) {
    const size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const size_t length = first_character(text);
    if (length == 0) {
      shown += fmt::format("\\x{:02x}", static_cast<uint8_t>(text.front()));
    } else if (const uint32_t code = code_point(text.substr(0, length)); is_for_terminal(code)) {
      shown += text.substr(0, length);
    } else {
      shown += fmt::format("\\u{:04x}", code);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return shown;
}

std::string one_line(std::string_view text) {
  std::string line(text);
  std::ranges::replace_if(
      line, [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  return printable(line);
}

std::string shortened(std::string_view text) {
  constexpr size_t kShownBytes = 100;
  if (text.size() <= kShownBytes) return std::string(text);
  return fmt::format("{}...", text.substr(0, well_formed_prefix(text.substr(0, kShownBytes))));
}

std::string in_quotes(std::string_view text) {
  std::string escaped;
  for (const char c : shortened(text)) {
    if (c == '"' || c == '\\' || c == '\n' || c == '\t') escaped += '\\';
    escaped += c == '\n' ? 'n' : c == '\t' ? 't' : c;
  }
  return fmt::format("\"{}\"", printable(escaped));
}

std::string first_line(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

std::string reason_text(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return "out of memory";
  const auto* of_files = dynamic_cast<const std::filesystem::filesystem_error*>(&error);
  if (of_files != nullptr && !of_files->path1().empty()) {
    return fmt::format("{}: {}", of_files->path1().string(), of_files->code().message());
  }
  std::string line = first_line(error.what());
  constexpr std::string_view kAllocator = "DefaultCPUAllocator: ";
  constexpr std::string_view kTried = "you tried to allocate ";
  const size_t tried = line.find(kTried);
  if (line.find(kAllocator) == std::string::npos || tried == std::string::npos) return line;
  const size_t begin = tried + kTried.size();
  const std::string bytes = line.substr(begin, line.find_first_not_of("0123456789", begin) - begin);
  return fmt::format("out of memory: no room for a tensor of {} bytes", bytes);
}

std::string suggestion(std::string_view word, std::span<const std::string> candidates) {
  constexpr size_t kLongest = 200;
  if (word.size() > kLongest) return "";
  const std::string* best = nullptr;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const auto& candidate : candidates) {
    const size_t shorter = std::min(word.size(), candidate.size());
    if (std::max(word.size(), candidate.size()) - shorter >= best_distance) continue;  // at least so far away
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = &candidate;
      best_distance = distance;
    }
  }
  return best == nullptr ? "" : fmt::format(" (did you mean \"{}\"?)", *best);
}

std::string list_of(std::span<const std::string> names) { return fmt::format("{}", fmt::join(names, ", ")); }

std::string either_of(std::span<const std::string> names) {
  if (names.size() < 2) return list_of(names);
  return fmt::format("{} or {}", list_of(names.first(names.size() - 1)), names.back());
}

std::string shape_text(std::span<const int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

int64_t parse_integer(std::string_view text, std::string_view what, int64_t low, int64_t high) {
  const auto value = parse_number<int64_t>(text);
  if (!value || *value < low || *value > high) {
    throw InputError("{} must be an integer from {} to {}, not \"{}\"", what, low, high, text);
  }
  return *value;
}

}  // namespace strait
