#include "strait/tokenizer/vocabulary.h"

#include <algorithm>
#include <array>

#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/base/utf8.h"

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

void Vocabulary::put(const std::string& bytes, int32_t id) {
  if (bytes.empty()) throw InputError("{}: a token is empty", file_);
  const auto [other, is_new] = tokens_.emplace(id, bytes);
  if (!is_new && other->second != bytes) {
    throw InputError("{}: tokens {} and {} both have the id {}", file_, quoted_short(other->second),
                     quoted_short(bytes), id);
  }
}

void Vocabulary::add_shown(const std::string& shown, int32_t id) {
  const auto added = added_.find(shown);
  const auto bytes = added != added_.end() && added->second == id ? shown : bytes_of_alphabet(shown);
  if (!bytes)
    throw InputError("{}: token {} has a character that stands for no byte", file_, quoted_short(shown));
  put(*bytes, id);
  const auto [known, is_new] = ids_.emplace(*bytes, id);
  if (!is_new) {
    throw InputError("{}: token {} has the ids {} and {}", file_, quoted_short(*bytes), known->second, id);
  }
}

void Vocabulary::add(const std::string& text, int32_t id) {
  put(text, id);
  const auto [known, is_new] = added_.emplace(text, id);
  if (!is_new && known->second != id) {
    throw InputError("{}: token {} has the ids {} and {}", file_, quoted_short(text), known->second, id);
  }
}

std::optional<int32_t> Vocabulary::find(const std::string& bytes) const {
  const auto found = ids_.find(bytes);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::array<int32_t, 256> Vocabulary::byte_tokens() const {
  std::array<int32_t, 256> tokens{};
  for (size_t byte = 0; byte < tokens.size(); ++byte)
    tokens[byte] = find(std::string(1, static_cast<char>(byte))).value_or(-1);
  return tokens;
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

void Vocabulary::check_is_whole() const {
  int32_t next = 0;
  for (const auto& [id, bytes] : tokens_) {
    if (id != next) {
      throw InputError("{}: no token has the id {}, expected one for each from 0 to {}", file_, next,
                       tokens_.rbegin()->first);
    }
    ++next;
  }
  const auto bytes = byte_tokens();
  if (const auto missing = std::ranges::find(bytes, -1); missing != bytes.end()) {
    throw InputError("{}: no token for the byte {:#04x}, expected one for each of the 256", file_,
                     missing - bytes.begin());
  }
}

}  // namespace strait
