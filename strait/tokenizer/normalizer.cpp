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

std::string Normalizer::first_form(std::string_view part) const {
  if (composes) return composed(part);
  if (!marks_early) return std::string(part);
  const bool gets_space = first_space == FirstSpace::of_parts && !part.empty();
  return (gets_space ? " " : "") + with_plain_spaces(part);
}

std::string Normalizer::last_form(std::string_view part, bool begins) const {
  std::string form = marks_spaces ? with_plain_spaces(part) : std::string(part);
  const bool may_lack_one =
      first_space == FirstSpace::where_missing || (first_space == FirstSpace::of_text && begins);
  if (may_lack_one && !form.empty() && form.front() != ' ') form.insert(form.begin(), ' ');
  return form;
}

}  // namespace strait
