#include "strait/tokenizer/vocabulary.h"

#include <algorithm>
#include <array>

#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/base/utf8.h"
#include "strait/tokenizer/normalizer.h"

namespace strait {
namespace {

constexpr size_t kAlphabetEnd = 0x144;
constexpr int kNoByte = -1;

/// The byte that each character below U+0144 stands for.
constexpr std::array<int, kAlphabetEnd> make_alphabet() {
  std::array<int, kAlphabetEnd> bytes{};
  bytes.fill(kNoByte);
  size_t next = 0x100;
  for (int byte = 0; byte < 0x100; ++byte) {
    const bool itself = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte != 0xad);
    bytes[itself ? static_cast<size_t>(byte) : next++] = byte;
  }
  return bytes;
}

constexpr auto kAlphabet = make_alphabet();

/// The byte that `<0x0A>` and the like stand for, as SentencePiece writes them.
std::optional<uint8_t> byte_of_name(std::string_view shown) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (shown.size() != 6 || !shown.starts_with("<0x") || shown.back() != '>') return std::nullopt;
  const size_t high = kDigits.find(shown[3]);
  const size_t low = kDigits.find(shown[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
  return static_cast<uint8_t>(high << 4U | low);
}

}  // namespace

std::optional<std::string> bytes_of_alphabet(std::string_view shown) {
  std::string bytes;
  for (size_t i = 0; i < shown.size(); ++i) {
    auto character = static_cast<uint8_t>(shown[i]) + size_t{0};
    // Every character of the alphabet has one or two bytes in UTF-8.
    if (character >= 0xe0) return std::nullopt;
    if (character >= 0xc0) character = (character & 0x1fU) << 6U | (static_cast<uint8_t>(shown[++i]) & 0x3fU);
    if (character >= kAlphabetEnd || kAlphabet[character] == kNoByte) return std::nullopt;
    bytes += static_cast<char>(kAlphabet[character]);
  }
  return bytes;
}

std::optional<std::string> Vocabulary::bytes_of(const std::string& shown) const {
  if (writing_ == Writing::alphabet) return bytes_of_alphabet(shown);
  if (shown.find(' ') != std::string::npos) return std::nullopt;
  return text_of(shown);
}

std::string Vocabulary::text_of(const std::string& added) const {
  return writing_ == Writing::characters ? with_plain_spaces(added) : added;
}

void Vocabulary::put(const std::string& bytes, int32_t id) {
  if (bytes.empty()) throw InputError("{}: a token is empty", file_);
  const auto [other, is_new] = tokens_.emplace(id, bytes);
  if (!is_new && other->second != bytes) {
    throw InputError("{}: tokens {} and {} both have the id {}", file_, in_quotes(other->second),
                     in_quotes(bytes), id);
  }
}

void Vocabulary::add_shown(const std::string& shown, int32_t id) {
  const auto added = added_.find(shown);
  const bool is_added = added != added_.end() && added->second == id;
  shown_.emplace(shown, id);
  if (const auto byte = writing_ == Writing::characters ? byte_of_name(shown) : std::nullopt) {
    if (is_added) tokens_.erase(id);  // what it was taken for
    put(std::string(1, static_cast<char>(*byte)), id);
    bytes_[*byte] = id;
    return;
  }
  const auto bytes = is_added ? text_of(shown) : bytes_of(shown);
  if (!bytes) {
    throw InputError("{}: token {} has {}", file_, in_quotes(shown),
                     writing_ == Writing::alphabet ? "a character that stands for no byte"
                                                   : "a space, expected U+2581 for one");
  }
  put(*bytes, id);
  if (writing_ == Writing::alphabet && bytes->size() == 1) bytes_[static_cast<uint8_t>(bytes->front())] = id;
  const auto [known, is_new] = ids_.emplace(*bytes, id);
  if (!is_new) {
    throw InputError("{}: token {} has the ids {} and {}", file_, in_quotes(*bytes), known->second, id);
  }
}

void Vocabulary::add(const std::string& text, int32_t id) {
  put(text_of(text), id);
  const auto [known, is_new] = added_.emplace(text, id);
  if (!is_new && known->second != id) {
    throw InputError("{}: token {} has the ids {} and {}", file_, in_quotes(text), known->second, id);
  }
}

std::optional<int32_t> Vocabulary::find_shown(const std::string& shown) const {
  const auto found = shown_.find(shown);
  return found == shown_.end() ? std::nullopt : std::optional(found->second);
}

std::map<std::string, int32_t, std::less<>> Vocabulary::characters() const {
  std::map<std::string, int32_t, std::less<>> characters;
  if (writing_ == Writing::alphabet) return characters;
  for (const auto& [text, id] : ids_) {
    if (first_character(text) == text.size()) characters.emplace(text, id);
  }
  return characters;
}

std::vector<std::string> Vocabulary::finish() const {
  // An id is not to make the table of tokens any size that somebody wrote.
  constexpr size_t kGapsMost = 100'000;
  std::vector<std::string> tokens;
  size_t gaps = 0;
  for (const auto& [id, bytes] : tokens_) {
    gaps += static_cast<size_t>(id) - tokens.size();
    if (gaps > kGapsMost)
      throw InputError("{}: the id {} is {} above those before it", file_, id,
                       static_cast<size_t>(id) - tokens.size());
    tokens.resize(static_cast<size_t>(id));
    tokens.push_back(bytes);
  }
  return tokens;
}

void Vocabulary::check_has_no_gaps() const {
  int32_t next = 0;
  for (const auto& [id, bytes] : tokens_) {
    if (id != next) {
      throw InputError("{}: no token has the id {}, expected one for each from 0 to {}", file_, next,
                       tokens_.rbegin()->first);
    }
    ++next;
  }
}

void Vocabulary::check_has_space() const {
  if (!ids_.contains(" ")) throw InputError("{}: no token for U+2581, expected one", file_);
}

void Vocabulary::check_has_bytes() const {
  if (const auto missing = std::ranges::find(bytes_, -1); missing != bytes_.end()) {
    throw InputError("{}: no token for the byte {:#04x}, expected one for each of the 256", file_,
                     missing - bytes_.begin());
  }
}

}  // namespace strait
