#include "strait/tokenizer/vocabulary.h"

#include <array>

#include "strait/base/error.h"
#include "strait/base/utf8.h"

namespace strait {
namespace {

constexpr size_t kShownBytes = 60;
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

std::string shortened(std::string_view text) {
  if (text.size() <= kShownBytes) return std::string(text);
  return fmt::format("{}...", text.substr(0, well_formed_prefix(text.substr(0, kShownBytes))));
}

std::string quoted_short(std::string_view text) { return fmt::format("\"{}\"", shortened(text)); }

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

void Vocabulary::add_shown(const std::string& shown, int32_t id) {
  const auto bytes = bytes_of_alphabet(shown);
  if (!bytes)
    throw InputError("{}: token {} has a character that stands for no byte", file_, quoted_short(shown));
  add(*bytes, id);
}

void Vocabulary::add(const std::string& bytes, int32_t id) {
  if (bytes.empty()) throw InputError("{}: a token is empty", file_);
  const auto [known, is_new] = ids_.emplace(bytes, id);
  if (!is_new && known->second == id) return;
  if (!is_new) {
    throw InputError("{}: token {} has the ids {} and {}", file_, quoted_short(bytes), known->second, id);
  }
  const auto [other, free] = tokens_.emplace(id, bytes);
  if (!free) {
    throw InputError("{}: tokens {} and {} both have the id {}", file_, quoted_short(other->second),
                     quoted_short(bytes), id);
  }
}

std::optional<int32_t> Vocabulary::find(const std::string& bytes) const {
  const auto found = ids_.find(bytes);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> Vocabulary::finish() const {
  std::vector<std::string> tokens;
  for (const auto& [id, bytes] : tokens_) {
    if (id != static_cast<int32_t>(tokens.size())) {
      throw InputError("{}: no token has the id {}, expected one for each from 0 to {}", file_, tokens.size(),
                       tokens_.rbegin()->first);
    }
    tokens.push_back(bytes);
  }
  for (int byte = 0; byte < 0x100; ++byte) {
    if (!find(std::string(1, static_cast<char>(byte)))) {
      throw InputError("{}: no token for the byte {:#04x}, expected one for each of the 256", file_, byte);
    }
  }
  return tokens;
}

}  // namespace strait
