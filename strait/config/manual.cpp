#include "strait/config/manual.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "strait/config/kinds.h"

namespace strait {
namespace {

struct Line {
  KeyEntry entry;
  std::string table;  ///< of whose kinds there must be one of these; none: the key is there already
  std::vector<std::string> kinds;
  std::vector<std::string> notes;  ///< at the comment's end
};

std::vector<Line> lines_of(const Config& config) {
  std::vector<Line> lines;
  for (auto& entry : key_entries(config)) lines.push_back({std::move(entry), "", {}, {}});
  return lines;
}

/// What a comment says of a key that is another with a kind: its value, its meaning or both.
std::string note_of(const KeyEntry& known, const KeyEntry& entry, const KindChoice& choice) {
  const std::string with = fmt::format("with {}", setting_of(choice.table, {&choice.kind, 1}));
  if (known.meaning == entry.meaning) return fmt::format("{} {}", entry.value, with);
  return fmt::format("{} {}: {}", entry.value, with, entry.meaning);
}

/// Puts in the keys that another choice of kinds has, each behind the one that comes before it there, and notes
/// what it changes of the others.
void add_choice(std::vector<Line>& lines, const KindChoice& choice) {
  size_t next = 0;
  for (auto& entry : key_entries(defaults_for(choice.config))) {
    const auto known =
        std::ranges::find_if(lines, [&](const Line& line) { return line.entry.key == entry.key; });
    if (known == lines.end()) {
      lines.insert(lines.begin() + static_cast<ptrdiff_t>(next),
                   Line{std::move(entry), choice.table, {choice.kind}, {}});
      ++next;
      continue;
    }
    next = static_cast<size_t>(known - lines.begin()) + 1;
    if (known->table == choice.table) known->kinds.push_back(choice.kind);
    const bool same = known->entry.value == entry.value && known->entry.meaning == entry.meaning;
    if (!same && !entry.key.ends_with(".kind")) known->notes.push_back(note_of(known->entry, entry, choice));
  }
}

std::string line_text(const Line& line, std::string_view name) {
  constexpr int kColumn = 44;  // where comments begin
  const std::string assignment =
      fmt::format("{}{} = {}", line.kinds.empty() ? "" : "# ", name, line.entry.value);
  std::string text =
      fmt::format("{:<{}} # {}; {}", assignment, kColumn, line.entry.meaning, line.entry.expected);
  if (!line.kinds.empty()) text += "; with " + setting_of(line.table, line.kinds);
  for (const auto& note : line.notes) text += "; " + note;
  return text + "\n";
}

/// A line of a table's key is `name = value`, of a table in a table `table.name = value`.
std::string manual_text(const std::vector<Line>& lines) {
  std::string text;
  std::string table;
  for (const auto& line : lines) {
    const std::string& key = line.entry.key;
    const size_t dot = key.find('.');
    const std::string here = dot == std::string::npos ? "" : key.substr(0, dot);
    if (here != table) text += fmt::format("\n[{}]\n", here);
    table = here;
    text += line_text(line, std::string_view(key).substr(dot == std::string::npos ? 0 : dot + 1));
  }
  return text;
}

}  // namespace

std::string manual_of_defaults() {
  auto lines = lines_of(defaults_for(Config()));
  for (const auto& choice : all_kinds()) add_choice(lines, choice);
  return manual_text(lines);
}

std::string manual_of(const Config& config) {
  auto lines = lines_of(config);
  const auto defaults = key_values(defaults_for(config));
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].entry.value != defaults[i].second) {
      lines[i].notes.push_back("default " + defaults[i].second);
    }
  }
  return manual_text(lines);
}

}  // namespace strait
