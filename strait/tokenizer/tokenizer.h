#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "strait/tokenizer/tokenizer_files.h"

namespace strait {

/// What encoding does with `<|endoftext|>` and the like (AddedToken::is_special) where they stand in a text.
/// Other added tokens are always tokens.
enum class SpecialTokens : uint8_t {
  as_text,   ///< characters like any others
  as_tokens  ///< the token of that text; of two that fit, the longer
};

/// A byte-pair encoding: a text is cut into pieces (pre_tokenizer.h), the bytes of a piece are its first
/// tokens, as GPT-2 has it (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019,
/// section 2.2), or its characters and the bytes of those that have no token, as SentencePiece has it, and the
/// merges are done in order of rank, from left to right. Every byte string can be encoded, and decoding gives
/// it back where nothing is normalized, no byte lacks a token and nothing between pieces or around added tokens
/// is left out. Immutable, so that threads may share one.
class Tokenizer {
 public:
  /// The tokenizer of a model that parse_tokenizer_files() has checked.
  explicit Tokenizer(BpeModel model);

  /// How many tokens there are; ids are below it.
  int32_t vocab_size() const { return static_cast<int32_t>(model_.tokens.size()); }

  /// The tokens of a text. To encode many texts, use a BpeEncoder (bpe_encoder.h).
  std::vector<int32_t> encode(std::string_view text, SpecialTokens special = SpecialTokens::as_text) const;

  /// The text of the tokens, which need not be UTF-8, without the space that encoding puts in front
  /// (FirstSpace). Throws InputError for an id that is none.
  std::string decode(std::span<const int64_t> ids) const;

  /// The same for ids of 32 bits.
  std::string decode(std::span<const int32_t> ids) const;

  /// The bytes of the token of an id within a text.
  std::string_view bytes_of(int64_t id) const;

  /// The token of a single byte; -1 where it has none and is left out.
  int32_t byte_token(uint8_t byte) const { return model_.byte_tokens[byte]; }

  /// The token of a character that is not made of its bytes, where there is one.
  std::optional<int32_t> character_token(std::string_view character) const;

  /// The rank of the merge of two tokens that stand side by side, if there is one.
  std::optional<uint32_t> rank(int32_t left, int32_t right) const;

  /// Whether a merge is done wherever it applies before another one is looked for (BpeModel::merges_by_rank).
  bool merges_by_rank() const { return model_.merges_by_rank; }

  /// What the merge of that rank makes.
  int32_t merged(uint32_t rank) const { return model_.merges[rank].result; }

  /// The token of a piece that needs no merges, where there is one (BpeModel::whole_pieces).
  std::optional<int32_t> whole(std::string_view piece) const;

  /// The tokens that are found by their texts alone, the longest first.
  const std::vector<AddedToken>& added_tokens() const { return model_.added_tokens; }

  /// The one of them with that text, where there is one.
  std::optional<int32_t> added_token(std::string_view text) const;

  /// The tokens that stand before a text which a network is to continue, such as `<s>`. Encoding adds none.
  std::span<const int32_t> prefix() const { return model_.prefix; }

  /// What cuts texts into pieces.
  std::span<const PiecePattern> patterns() const { return model_.patterns; }

  /// What is done to texts before they are cut. Decoding gives that form, but for the first space.
  const Normalizer& normalizer() const { return model_.normalizer; }

 private:
  BpeModel model_;
  std::unordered_map<uint64_t, uint32_t> ranks_;
  std::vector<int32_t> whole_;  ///< those of whole(), in the order of their bytes
};

/// The tokenizer whose files lie in the folder (tokenizer_files.h). Throws InputError.
Tokenizer load_tokenizer(const std::filesystem::path& folder);

}  // namespace strait
