#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

namespace strait {

/// Cuts a text into the pieces that GPT-2's byte-pair encoding never merges across: a contraction such as 've,
/// letters, digits or other characters with a space before them, and runs of white space. Source: the pattern
/// of encoder.py in https://github.com/openai/gpt-2. Letters and numbers are Unicode's categories L and N,
/// white space its property White_Space.
///
/// A malformed byte, one that is no part of a well-formed UTF-8 character, is a piece of its own, and the text
/// on either side is cut as though it ended and began there. So the pieces of any bytes, one behind the other,
/// are those bytes.
///
/// The text must outlive the object. Objects are independent of one another; each is for one thread.
class PreTokenizer {
 public:
  /// Begins at the first byte of `text`.
  explicit PreTokenizer(std::string_view text);
  ~PreTokenizer();
  PreTokenizer(const PreTokenizer&) = delete;
  PreTokenizer& operator=(const PreTokenizer&) = delete;

  /// The next piece, never empty; nothing after the last.
  std::optional<std::string_view> next();

 private:
  struct Match;
  std::string_view text_;
  size_t position_ = 0;
  size_t well_formed_ = 0;  ///< where the well-formed characters from position_ on end
  std::unique_ptr<Match> match_;
};

}  // namespace strait
