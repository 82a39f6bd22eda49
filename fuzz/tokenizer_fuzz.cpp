#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "fuzz/tokenizer_input.h"
#include "strait/base/error.h"
#include "strait/tokenizer/tokenizer.h"

namespace {

/// Whether decoding gives every byte string back (tokenizer.h).
bool is_lossless(const strait::BpeModel& model) {
  const auto drops = [](const strait::PiecePattern& pattern) { return pattern.is_alone(); };
  const auto strips = [](const strait::AddedToken& token) {
    return token.takes_space_before || token.takes_space_behind;
  };
  int byte = 0;
  const auto is_own = [&](int32_t id) {
    return id >= 0 && model.tokens[static_cast<size_t>(id)] == std::string(1, static_cast<char>(byte++));
  };
  return !model.normalizer.composes && !model.normalizer.marks_spaces &&
         std::ranges::all_of(model.byte_tokens, is_own) && std::ranges::none_of(model.patterns, drops) &&
         std::ranges::none_of(model.added_tokens, strips);
}

/// Files are refused with an InputError, or give a tokenizer from which a text comes back; so is a text for
/// which their pattern takes too long.
void try_files(const std::vector<strait::NamedText>& files, std::string_view text) {
  try {
    strait::BpeModel model = strait::parse_tokenizer_files(files);
    const bool expects_text = is_lossless(model);
    const strait::Tokenizer tokenizer(std::move(model));
    const auto back = tokenizer.decode(tokenizer.encode(text));
    STRAIT_CHECK(back == text || !expects_text, "the text does not come back");
    tokenizer.encode(text, strait::SpecialTokens::as_tokens);
  } catch (const strait::InputError&) {
    return;
  }
}

/// The tokens of the 256 bytes as a vocabulary of characters has them, and that of a space.
std::string entries_of_characters() {
  std::string entries;
  for (int byte = 0; byte < 256; ++byte) entries += fmt::format("\"<0x{:02X}>\": {}, ", byte, byte);
  return entries + "\"\xe2\x96\x81\": 256";
}

}  // namespace

/// The input is a tokenizer.json; and again, up to the first NUL byte, entries of a vocabulary behind those of
/// the 256 bytes, of their alphabet and of characters, and behind it a merges.txt and the rest of a
/// tokenizer.json from the merges on.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  try_files({{"tokenizer.json", input}}, input);
  const size_t end = std::min(input.find('\0'), size);
  const std::string vocab = fmt::format("{{{}{}}}", strait::fuzz::byte_entries(), input.substr(0, end));
  const std::string rest = input.substr(std::min(end + 1, size));
  try_files({{"vocab.json", vocab}, {"merges.txt", rest}}, input);
  try_files({{"tokenizer.json", R"({"pre_tokenizer": {"type": "ByteLevel"}, "model": {"vocab": )" + vocab +
                                    R"(, "merges": [)" + rest}},
            input);
  try_files(
      {{"tokenizer.json", R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "split": false},)"
                          R"( "model": {"byte_fallback": true, "vocab": {)" +
                              entries_of_characters() + input.substr(0, end) + R"(}, "merges": [)" + rest}},
      input);
  const std::string pattern =
      nlohmann::json(input.substr(0, end)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  try_files({{"tokenizer.json",
              R"({"normalizer": {"type": "NFC"}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [)"
              R"({"type": "Split", "behavior": "Isolated", "pattern": {"Regex": )" +
                  pattern + R"(}}, {"type": "ByteLevel", "use_regex": false}]}, "model": {"vocab": {)" +
                  strait::fuzz::byte_entries() + R"(}, "merges": [], "ignore_merges": true}})"}},
            rest);
  return 0;
}
