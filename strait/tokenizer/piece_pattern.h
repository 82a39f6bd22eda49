#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

namespace strait {

/// A regular expression that finds the pieces of a text. Immutable; copies share it.
class PiecePattern {
 public:
  /// GPT-2's: a contraction such as 've, letters, digits or other characters with a space before them, and runs
  /// of white space. Source: encoder.py in https://github.com/openai/gpt-2.
  static PiecePattern of_gpt2();

  /// In Oniguruma's dialect, which a tokenizer.json of Hugging Face has, as far as that and PCRE2's say the
  /// same: classes without classes in them, white space, digits, general categories, groups, lookaround and
  /// quantifiers. Throws InputError that reads on from the place of the pattern in its file: for what else
  /// there is, and for a pattern that an empty text matches.
  static PiecePattern of_oniguruma(std::string_view pattern);

  /// The text itself and nothing else, under the same conditions.
  static PiecePattern of_text(std::string_view text);

  /// The same, but that what lies between matches is no piece and is left out.
  PiecePattern alone() const;

  /// Whether it is one of alone().
  bool is_alone() const { return is_alone_; }

  /// A match in a text: bytes [begin, end).
  struct Match {
    size_t begin = 0;  ///< byte
    size_t end = 0;    ///< byte
  };

  /// The first match that begins at byte `from` or behind it; nothing where there is none. The text is
  /// well-formed UTF-8. Throws InputError where the search at one place takes too many steps, which bounds no
  /// pattern that takes many at each place.
  std::optional<Match> find(std::string_view text, size_t from) const;

 private:
  struct Code;
  explicit PiecePattern(std::string_view pcre2);

  std::shared_ptr<const Code> code_;
  bool is_alone_ = false;
};

}  // namespace strait
