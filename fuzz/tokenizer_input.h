#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strait/tokenizer/tokenizer_files.h"

namespace strait::fuzz {

/// Bytes in GPT-2's alphabet, written as encoder.py says it: printable bytes stand for themselves, and the
/// others are U+0100 and on, in order.
inline std::string shown(std::string_view bytes) {
  const auto printable = [](int byte) {
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
  };
  std::string text;
  for (const char c : bytes) {
    const int byte = static_cast<unsigned char>(c);
    int character = byte;
    if (!printable(byte)) {
      character = 0x100;
      for (int other = 0; other < byte; ++other) character += printable(other) ? 0 : 1;
    }
    if (character < 0x80) {
      text += static_cast<char>(character);
    } else {
      text += static_cast<char>(0xc0 | character >> 6);
      text += static_cast<char>(0x80 | (character & 0x3f));
    }
  }
  return text;
}

/// `"TOKEN": id` of vocab.json.
inline std::string vocab_entry(std::string_view bytes, size_t id) {
  std::string entry = "\"";
  for (const char c : shown(bytes)) {
    if (c == '"' || c == '\\') entry += '\\';
    entry += c;
  }
  return entry + "\": " + std::to_string(id);
}

/// The entries of the 256 bytes, whose ids are the bytes.
inline std::string byte_entries() {
  std::string entries;
  for (int byte = 0; byte < 256; ++byte) {
    if (byte > 0) entries += ", ";
    entries += vocab_entry(std::string(1, static_cast<char>(byte)), static_cast<size_t>(byte));
  }
  return entries;
}

using Merges = std::vector<std::pair<std::string, std::string>>;  ///< of bytes

/// vocab.json and merges.txt of a tokenizer with the 256 bytes, what the merges make in their order, and
/// `<|endoftext|>`.
inline std::vector<NamedText> small_tokenizer(const Merges& merges) {
  std::string vocab = "{";
  vocab += byte_entries();
  std::string list = "#version: 0.2\n";
  size_t id = 256;
  for (const auto& [left, right] : merges) {
    vocab += fmt::format(", {}", vocab_entry(left + right, id++));
    list += fmt::format("{} {}\n", shown(left), shown(right));
  }
  vocab += fmt::format(", {}}}", vocab_entry("<|endoftext|>", id));
  return {{"vocab.json", vocab}, {"merges.txt", list}};
}

/// Merges of words, spaces and characters of several bytes. Two of them stand in the wrong order: "xyz" could
/// be made before "xy" is.
inline Merges sample_merges() {
  return {{" ", "t"},       {"h", "e"},           {" t", "he"},     {"i", "n"},   {"e", "r"},
          {" ", "a"},       {"\xc3", "\xa9"},     {"\xe3", "\x81"}, {"a", "a"},   {"aa", "aa"},
          {"'", "s"},       {" ", " "},           {"  ", "  "},     {"\n", "\n"}, {"0", "0"},
          {"1", "9"},       {"\xcc", "\x81"},     {"xy", "z"},      {"y", "x"},   {"x", "y"},
          {"\xf0", "\x9f"}, {"in", "g"},          {" the", "r"},    {"\r", "\n"}, {"\xff", "\xfe"},
          {"\xe2", "\x80"}, {"\xe2\x80", "\x8d"}, {"o", "r"},       {"t", "h"},   {"th", "e"}};
}

}  // namespace strait::fuzz
