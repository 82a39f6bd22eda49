#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "strait/tokenizer/normalizer.h"
#include "strait/tokenizer/piece_pattern.h"

namespace strait {

/// A token that is found in a text by its own text, before the text is cut into pieces.
struct AddedToken {
  std::string text;                 ///< as it stands in a text, such as `<|endoftext|>`
  int32_t id = 0;                   ///< of the token
  bool is_special = true;           ///< is text like any other where nobody asks for such tokens
  bool is_normalized = false;       ///< is looked for behind the normalizer, and its text is one of those
  bool takes_space_before = false;  ///< white space before it belongs to it (lstrip)
  bool takes_space_behind = false;  ///< likewise behind it (rstrip)
};

/// A byte-pair encoding as its files define it.
struct BpeModel {
  /// Two tokens that stand side by side become one.
  struct Merge {
    int32_t left = 0;    ///< token
    int32_t right = 0;   ///< token behind it
    int32_t result = 0;  ///< its bytes are those of left and right
  };

  std::vector<std::string> tokens;  ///< the bytes of each token, by id; none where there is no such token
  std::array<int32_t, 256> byte_tokens{};                  ///< of each byte; -1: it is left out
  std::map<std::string, int32_t, std::less<>> characters;  ///< that have a token; all others are their bytes
  std::vector<Merge> merges;             ///< the earliest that applies is done first; no pair comes twice
  bool merges_by_rank = true;            ///< wherever it applies, as in GPT-2's own; else at its first place
  std::vector<AddedToken> added_tokens;  ///< the longest first
  std::vector<PiecePattern> patterns = {PiecePattern::of_gpt2()};  ///< that cut a text, see PreTokenizer
  Normalizer normalizer;                                           ///< of texts, before that
  std::vector<int32_t> prefix;  ///< tokens that stand before a text which a network is to continue
  bool whole_pieces =
      false;  ///< a piece that is a token, but none of added_tokens, is that token, whatever merges make
};

/// A file's content, and the name that messages call it by.
struct NamedText {
  std::string name;  ///< for messages
  std::string text;  ///< all bytes of the file
};

/// Whether a tokenizer's files lie in the folder.
bool holds_tokenizer(const std::filesystem::path& folder);

/// The files of a tokenizer in a folder: tokenizer.json, which says everything, or where it is not there
/// vocab.json and merges.txt. Throws InputError when they are missing or cannot be read, and for these two
/// where a tokenizer_config.json or added_tokens.json beside them is of a tokenizer that is not GPT-2's, or
/// adds tokens.
std::vector<NamedText> read_tokenizer_files(const std::filesystem::path& folder);

/// Reads two files as vocab.json and merges.txt and one as tokenizer.json.
///
/// vocab.json is an object of token and id. A token is written in GPT-2's alphabet of bytes, in which 188 bytes
/// stand for themselves and U+0100 to U+0143 for the others in order (encoder.py, bytes_to_unicode). merges.txt
/// has one merge per line, `left right`, behind a first line that may begin with `#version`; texts are cut as
/// by GPT-2, special tokens are those that are neither a byte nor made by a merge, ids are 0 to n - 1, and
/// every byte has a token. tokenizer.json is that of Hugging Face: model.vocab, model.merges (texts or pairs),
/// model.ignore_merges, model.unk_token (that of each byte which has none); added_tokens, whose content is not
/// in that alphabet; pre_tokenizer of ByteLevel, or a Sequence that ends with it, of Split (a pattern:
/// isolated, or inverted and removed) and Digits; a normalizer that is NFC. With model.byte_fallback it is one
/// as SentencePiece makes them (Kudo and Richardson 2018): tokens are texts with U+2581 for a space, `<0x00>`
/// to `<0xFF>` those of the bytes of characters that have none, and either the normalizer turns spaces into
/// U+2581 (Replace, behind a Prepend of one or not) or the pre-tokenizer does (Metaspace). What else of these
/// it may ask for is refused. What cuts or fills the ids of a text or stands around them (truncation, padding,
/// post_processor) does not count but for the prefix, nor does the decoder: what encoding puts in front of a
/// text, decoding takes away.
///
/// Throws InputError that names the file and the line, token, merge or part: for what is not JSON or of another
/// form, ids that two tokens share, in vocab.json ids that are not 0 to n - 1, there and with byte_fallback
/// bytes without a token, and merges of or into what is no token.
BpeModel parse_tokenizer_files(std::span<const NamedText> files);

/// A tokenizer.json of files that parse_tokenizer_files() has read, which have these added tokens: the file
/// itself, or what vocab.json and merges.txt say.
std::string to_tokenizer_json(std::span<const NamedText> files, std::vector<AddedToken> added_tokens);

/// The text of the token that ends a text: eos_token of a tokenizer_config.json in the folder, or else
/// `<|endoftext|>`. Throws InputError where that file cannot be read.
std::string end_of_text_of(const std::filesystem::path& folder);

}  // namespace strait
