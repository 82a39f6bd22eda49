#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "strait/tokenizer/piece_pattern.h"

namespace strait {

/// Cuts a text into the pieces that a byte-level byte-pair encoding never merges across: each match of the
/// first pattern is a piece, and so is what lies between matches; the next pattern cuts each of these as a text
/// of its own, and so on. Letters and numbers are Unicode's categories L and N, white space its property
/// White_Space.
///
/// A malformed byte, one that is no part of a well-formed UTF-8 character, is a piece of its own, and the text
/// on either side is cut as though it ended and began there. So without such a pattern the pieces of any bytes,
/// one behind the other, are those bytes.
///
/// The text and the patterns must outlive the object. Objects are independent of one another; each is for one
/// thread.
class PreTokenizer {
 public:
  /// Begins at the first byte of `text`.
  PreTokenizer(std::string_view text, std::span<const PiecePattern> patterns)
      : text_(text), patterns_(patterns) {}

  /// The next piece, never empty; nothing after the last.
  std::optional<std::string_view> next();

 private:
  /// A text that a pattern cuts, and how far it has.
  struct Cut {
    std::string_view text;
    size_t position = 0;
    std::optional<PiecePattern::Match> match;  ///< found already, behind position or at it
  };

  static std::string_view piece_of(Cut& cut, const PiecePattern& pattern);  // empty: what is left out

  std::string_view text_;
  std::span<const PiecePattern> patterns_;
  size_t position_ = 0;    ///< in text_
  std::vector<Cut> open_;  ///< what each of the first patterns has in hand
};

}  // namespace strait
