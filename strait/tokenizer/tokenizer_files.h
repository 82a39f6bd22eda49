#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace strait {

/// A byte-level byte-pair encoding as its files define it.
struct BpeModel {
  /// Two tokens that stand side by side become one.
  struct Merge {
    int32_t left = 0;    ///< token
    int32_t right = 0;   ///< token behind it
    int32_t result = 0;  ///< its bytes are those of left and right
  };

  std::vector<std::string>
      tokens;                 ///< the bytes of each token, by id; no two are equal, every single byte is there
  std::vector<Merge> merges;  ///< the earliest that applies is done first; no pair comes twice
};

/// A file's content, and the name that messages call it by.
struct NamedText {
  std::string name;  ///< for messages
  std::string text;  ///< all bytes of the file
};

/// The files of a tokenizer in a folder: vocab.json and merges.txt, or tokenizer.json where neither of them is
/// there. Throws InputError when they are missing or cannot be read.
std::vector<NamedText> read_tokenizer_files(const std::filesystem::path& folder);

/// Reads two files as vocab.json and merges.txt and one as tokenizer.json.
///
/// vocab.json is an object of token and id. A token is written in GPT-2's alphabet of bytes, in which 188 bytes
/// stand for themselves and U+0100 to U+0143 for the others in order (encoder.py, bytes_to_unicode). merges.txt
/// has one merge per line, `left right`, behind a first line that may begin with `#version`. tokenizer.json is
/// that of Hugging Face: model.vocab, model.merges (texts or pairs) and added_tokens, whose content is not in
/// that alphabet; what else it may ask for (a normalizer, another pre-tokenizer, prefixes) is refused.
///
/// Throws InputError that names the file and the line, token or merge: for what is not JSON or of another form,
/// ids that are not 0 to n - 1 with each once, bytes without a token, and merges of or into what is no token.
BpeModel parse_tokenizer_files(std::span<const NamedText> files);

}  // namespace strait
