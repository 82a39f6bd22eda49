#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace strait {

/// Follows UTF-8 byte by byte: overlong forms, surrogates and code points above U+10FFFF are refused.
class Utf8 {
 public:
  /// Takes the next byte; false when no well-formed text goes on so. Undefined after that.
  bool accept(uint8_t byte) {
    if (left_ > 0) {
      const bool good = byte >= low_ && byte <= high_;
      low_ = 0x80;
      high_ = 0xbf;
      --left_;
      return good;
    }
    if (byte < 0x80) return true;
    if (byte < 0xc2 || byte > 0xf4) return false;
    left_ = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    if (byte == 0xe0) low_ = 0xa0;
    if (byte == 0xed) high_ = 0x9f;
    if (byte == 0xf0) low_ = 0x90;
    if (byte == 0xf4) high_ = 0x8f;
    return true;
  }

  /// Whether the bytes so far end with a whole character.
  bool complete() const { return left_ == 0; }

 private:
  int left_ = 0;
  uint8_t low_ = 0x80;
  uint8_t high_ = 0xbf;
};

/// The length of the well-formed character that `text` begins with, or 0 where it begins with none.
inline size_t first_character(std::string_view text) {
  Utf8 character;
  for (size_t i = 0; i < text.size() && character.accept(static_cast<uint8_t>(text[i])); ++i) {
    if (character.complete()) return i + 1;
  }
  return 0;
}

/// How many bytes at the beginning of `text` are whole, well-formed characters.
inline size_t well_formed_prefix(std::string_view text) {
  Utf8 characters;
  size_t good = 0;
  for (size_t i = 0; i < text.size() && characters.accept(static_cast<uint8_t>(text[i])); ++i) {
    if (characters.complete()) good = i + 1;
  }
  return good;
}

}  // namespace strait
