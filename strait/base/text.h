#pragma once

#include <charconv>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace strait {

/// The text split at every `separator`; an empty text gives one empty part.
std::vector<std::string> split(std::string_view text, char separator);

/// ` (did you mean "NAME"?)` with the candidate nearest to `word` by edit distance, or an empty string
/// when none is near or the word is longer than any name. For the end of an error message about a misspelt
/// name.
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

/// The text as a terminal may show it, line by line. A control character other than the end of a line and the
/// tab, or one that turns the direction of writing, becomes its escape as in a JSON string, such as `\u001b`. A
/// byte that is not UTF-8 becomes its number, such as `\x9b`.
std::string printable(std::string_view text);

/// The same on one line: ends of lines and tabs become spaces.
std::string one_line(std::string_view text);

/// `text`, cut behind 100 bytes where it is longer: what a message shows of a file.
std::string shortened(std::string_view text);

/// The same in quotation marks, printable and on one line, with escapes as in JSON.
std::string in_quotes(std::string_view text);

/// The text up to the end of its first line.
std::string first_line(std::string_view text);

/// What a person is told of an exception: its first line, because LibTorch appends where it was thrown. Of the
/// standard library's about files, the path and the reason alone. Where LibTorch had no memory, which it says
/// in terms of its own files, that there is none and for how many bytes.
std::string reason_text(const std::exception& error);

/// The names as `a, b, c`.
std::string list_of(std::span<const std::string> names);

/// The names as `a, b or c`.
std::string either_of(std::span<const std::string> names);

/// A shape as `[100, 64]`.
std::string shape_text(std::span<const int64_t> shape);

/// A decimal number that is all of the text; nothing for any other text.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

/// A whole decimal integer within [low, high]; throws InputError that names `what` otherwise.
int64_t parse_integer(std::string_view text, std::string_view what, int64_t low, int64_t high);

}  // namespace strait
