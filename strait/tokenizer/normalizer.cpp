#include "strait/tokenizer/normalizer.h"

#include "strait/tokenizer/unicode.h"

namespace strait {

std::string with_plain_spaces(std::string_view text) {
  constexpr std::string_view kMark = "\xe2\x96\x81";  // U+2581
  std::string plain;
  plain.reserve(text.size());
  while (true) {
    const size_t mark = text.find(kMark);
    plain += text.substr(0, mark);
    if (mark == std::string_view::npos) return plain;
    plain += ' ';
    text.remove_prefix(mark + kMark.size());
  }
}

std::string_view Normalizer::first_form(std::string_view part, std::string& room) const {
  if (composes) return room = composed(part);
  if (!marks_early) return part;
  const bool gets_space = first_space == FirstSpace::of_parts && !part.empty();
  return room = (gets_space ? " " : "") + with_plain_spaces(part);
}

std::string_view Normalizer::last_form(std::string_view part, bool begins, std::string& room) const {
  if (!marks_spaces || marks_early) return part;
  room = with_plain_spaces(part);
  const bool may_lack_one =
      first_space == FirstSpace::where_missing || (first_space == FirstSpace::of_text && begins);
  if (may_lack_one && !room.empty() && room.front() != ' ') room.insert(room.begin(), ' ');
  return room;
}

}  // namespace strait
