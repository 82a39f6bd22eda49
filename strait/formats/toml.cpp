#include "strait/formats/toml.h"

#include <toml++/toml.h>

#include <algorithm>

#include "strait/base/error.h"
#include "strait/base/files.h"

namespace strait {
namespace {

/// More dots than any key has. The library limits how deep brackets nest, but not how deep dotted keys do in
/// each of them, and recursion over a hostile depth would run out of stack.
constexpr int kMaxDotsPerKey = 16;

/// Where the string ends whose quotation mark stands at `begin`; the text's end where nothing ends it.
size_t end_of_string(std::string_view text, size_t begin) {
  const char quote = text[begin];
  const auto has_three = [&](size_t at) { return text.substr(at, 3) == std::string(3, quote); };
  const bool of_lines = has_three(begin);
  for (size_t at = begin + (of_lines ? 3 : 1); at < text.size(); ++at) {
    if (quote == '"' && text[at] == '\\') {
      ++at;  // what is escaped ends nothing
    } else if (!of_lines && text[at] == quote) {
      return at + 1;
    } else if (of_lines && has_three(at)) {
      return std::min(text.find_first_not_of(quote, at), text.size());
    }
  }
  return text.size();
}

/// Sees keys as the library does, up to the first mistake, behind which nothing is parsed.
void check_depth(std::string_view text, const std::string& source) {
  int line = 1;
  int dots = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (text[at] == '"' || text[at] == '\'') end = end_of_string(text, at);
    if (text[at] == '#') end = std::min(text.find('\n', at), text.size());
    if (std::string_view("=,[]{}\n").find(text[at]) != std::string_view::npos) dots = 0;
    if (text[at] == '.' && ++dots > kMaxDotsPerKey) {
      throw InputError("{}: expected at most {} dots in a key", Origin{source, line}.text(), kMaxDotsPerKey);
    }
    line += static_cast<int>(std::ranges::count(text.substr(at, end - at), '\n'));
    at = end;
  }
}

TomlNode convert(const toml::node& node, const Origin& where);

TomlTable convert_table(const toml::table& table, const Origin& where) {
  TomlTable result;
  for (const auto& [key, value] : table) result.emplace(std::string(key.str()), convert(value, where));
  return result;
}

/// `where` serves values for which the library knows no line.
TomlNode convert(const toml::node& node, const Origin& where) {
  TomlNode result;
  result.origin = where;
  if (where.line != 0 && node.source().begin.line != 0) {
    result.origin.line = static_cast<int>(node.source().begin.line);
  }
  if (const auto* table = node.as_table()) {
    result.value = convert_table(*table, result.origin);
  } else if (const auto* array = node.as_array()) {
    TomlNode::Array items;
    for (const auto& item : *array) items.push_back(convert(item, result.origin));
    result.value = std::move(items);
  } else if (const auto* text = node.as_string()) {
    result.value = text->get();
  } else if (const auto* integer = node.as_integer()) {
    result.value = integer->get();
  } else if (const auto* real = node.as_floating_point()) {
    result.value = real->get();
  } else if (const auto* truth = node.as_boolean()) {
    result.value = truth->get();
  } else {
    result.value = TomlNode::Time{};
  }
  return result;
}

}  // namespace

std::string Origin::text() const { return line == 0 ? source : fmt::format("{}:{}", source, line); }

TomlTable parse_toml(std::string_view text, const std::string& source) {
  check_depth(text, source);
  try {
    return convert_table(toml::parse(text, std::string_view(source)), Origin{source, 1});
  } catch (const toml::parse_error& error) {
    const int line = static_cast<int>(error.source().begin.line);
    throw InputError("{}: not valid TOML: {}", Origin{source, line}.text(), error.description());
  }
}

TomlNode parse_toml_value(std::string_view text, const Origin& origin) {
  // The document must hold the one key: a line break in the text could add others.
  if (text.find('\n') == std::string_view::npos) {
    try {
      check_depth(text, origin.source);
      const toml::table parsed = toml::parse(fmt::format("value = {}", text));
      if (const auto* value = parsed.get("value")) return convert(*value, origin);
    } catch (const toml::parse_error&) {
      // Not TOML, so a string, such as a codec spec.
    } catch (const InputError&) {
      // Deeper than any value of a key, so a string, such as a path with many dots.
    }
  }
  return {std::string(text), origin};
}

TomlTable read_toml(const std::filesystem::path& path) {
  return parse_toml(read_whole(path, kConfigBytesMost), path.string());
}

void merge(TomlTable& under, TomlTable over) {
  for (auto& [key, node] : over) {
    const auto found = under.find(key);
    if (found == under.end()) {
      under.emplace(key, std::move(node));
    } else if (found->second.get<TomlTable>() != nullptr && node.get<TomlTable>() != nullptr) {
      merge(*found->second.get<TomlTable>(), std::move(*node.get<TomlTable>()));
    } else {
      found->second = std::move(node);
    }
  }
}

std::string describe(const TomlNode& node) {
  if (const auto* text = node.get<std::string>()) return toml_string(*text);
  if (const auto* integer = node.get<int64_t>()) return fmt::format("{}", *integer);
  if (const auto* real = node.get<double>()) return toml_number(*real);
  if (const auto* truth = node.get<bool>()) return *truth ? "true" : "false";
  if (node.get<TomlNode::Array>() != nullptr) return "an array";
  return node.get<TomlTable>() != nullptr ? "a table" : "a date or time";
}

}  // namespace strait
