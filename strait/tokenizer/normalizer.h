#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace strait {

/// Where encoding puts a space that decoding takes away.
enum class FirstSpace : uint8_t {
  none,           ///< nowhere
  of_parts,       ///< in front of each part between added tokens (Hugging Face's Prepend)
  where_missing,  ///< likewise, but of no part that begins with a space (Metaspace, always)
  of_text         ///< likewise, of the part that begins the text alone (Metaspace, first)
};

/// The text with spaces in place of U+2581, which is how SentencePiece writes them.
std::string with_plain_spaces(std::string_view text);

/// What is done to a text before it is cut into pieces.
struct Normalizer {
  bool composes = false;                      ///< it is brought into Unicode's normal form C
  bool marks_spaces = false;                  ///< U+2581 in it is a space
  bool marks_early = false;                   ///< so it is in the first form already
  FirstSpace first_space = FirstSpace::none;  ///< that it gets

  /// The form of a part between added tokens in which those that are normalized are looked for: the part itself
  /// where nothing changes, or else what `room` holds then.
  std::string_view first_form(std::string_view part, std::string& room) const;

  /// Likewise the form that is cut, of a part between these, which is in its first form. `begins` says whether
  /// it begins the text.
  std::string_view last_form(std::string_view part, bool begins, std::string& room) const;
};

}  // namespace strait
