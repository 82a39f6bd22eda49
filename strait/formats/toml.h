#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "strait/base/literal.h"

namespace strait {

/// Where a value was written: a line of a file, or a flag of the command line.
struct Origin {
  std::string source;  ///< the file's path, or the flag
  int line = 0;        ///< 0 where a line means nothing

  /// `FILE:LINE`, or the source alone.
  std::string text() const;
};

/// A TOML value with its origin. toml.cpp alone sees the TOML library, which is slow to parse.
struct TomlNode {
  /// Values in order.
  using Array = std::vector<TomlNode>;

  /// Values by key.
  using Table = std::map<std::string, TomlNode, std::less<>>;
  struct Time {};  ///< a date or a time, which no key of strait takes

  std::variant<Table, Array, std::string, int64_t, double, bool, Time> value;  ///< of any of TOML's types
  Origin origin;                                                               ///< where it was written

  /// The value, where it is a T; else null.
  template <class T>
  const T* get() const {
    return std::get_if<T>(&value);
  }

  /// The same, to change.
  template <class T>
  T* get() {
    return std::get_if<T>(&value);
  }
};

/// A document, or a table in it.
using TomlTable = TomlNode::Table;

/// Reads a document. Throws InputError `SOURCE:LINE: not valid TOML: ...`.
TomlTable parse_toml(std::string_view text, const std::string& source);

/// Reads the value of a `--set key=value` flag: TOML where it is TOML, otherwise the text as a string.
TomlNode parse_toml_value(std::string_view text, const Origin& origin);

/// Reads a file of at most a mebibyte, more than any configuration takes. Throws InputError.
TomlTable read_toml(const std::filesystem::path& path);

/// Puts `over` on top of `under`: tables are merged key by key, every other value is replaced.
void merge(TomlTable& under, TomlTable over);

/// What a value is, for the end of an error message: `3`, `"text"`, `an array`, ...
std::string describe(const TomlNode& node);

}  // namespace strait
