#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "strait/tokenizer/tokenizer.h"

namespace strait {

/// Encodes texts for one thread, and remembers the tokens of the pieces that it has met, because most pieces of
/// a language come again. The memory has a limit, beyond which nothing new is remembered. A piece of n bytes
/// takes O(n log n) time.
class BpeEncoder {
 public:
  /// The tokenizer must outlive the encoder.
  explicit BpeEncoder(const Tokenizer& tokenizer);

  /// Appends the tokens of a text.
  void append(std::string_view text, std::vector<int32_t>& ids, SpecialTokens special = SpecialTokens::as_text);

 private:
  /// Added tokens, to be found in a text.
  class Finder {
   public:
    /// Of tokens with the longest first; of several with one text it takes the first.
    explicit Finder(std::vector<const AddedToken*> tokens = {});

    /// The first place from `begin` on where a token may stand; npos where there is none.
    size_t candidate(std::string_view text, size_t begin) const {
      return text.find_first_of(first_bytes_, begin);
    }

    /// The longest token with which the text begins; nullptr where there is none. However many tokens there
    /// are, it compares with as many of them as a binary search does, and then goes from a token to the longest
    /// one that begins it.
    const AddedToken* at_begin_of(std::string_view text) const;

   private:
    std::vector<const AddedToken*> tokens_;  ///< in the order of their texts
    std::vector<size_t> beginnings_;         ///< of each, the longest other one with which its text begins
    std::string first_bytes_;                ///< of their texts, each once
  };

  /// A token of the piece in hand. Symbols are chained; one that went into its left neighbour has the id kGone.
  struct Symbol {
    int32_t id;
    size_t previous;
    size_t next;
  };

  /// A pair that can be merged, by rank and then from left to right.
  struct Candidate {
    uint32_t rank;
    size_t left;
    bool operator>(const Candidate& other) const {
      return std::tie(rank, left) > std::tie(other.rank, other.left);
    }
  };

  struct Hash {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the standard library's name
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  struct Known {
    size_t first = 0;  ///< of known_ids_
    size_t count = 0;
  };

  template <class Rest>
  static void take_out(const Finder& finder, std::string_view text, std::vector<int32_t>& ids,
                       const Rest& rest);
  void append_pieces(std::string_view text, std::vector<int32_t>& ids);
  void append_piece(std::string_view piece, std::vector<int32_t>& ids);
  void merge_piece(std::string_view piece, std::vector<int32_t>& ids);
  void merge_lowest_rank();
  void merge_first();
  void join(size_t left);
  void consider(size_t left);
  bool has_rank(size_t left, uint32_t rank) const;

  const Tokenizer& tokenizer_;
  std::array<Finder, 2> given_;       ///< by SpecialTokens, those that are looked for in a text as it is given
  std::array<Finder, 2> normalized_;  ///< likewise behind the normalizer
  std::unordered_map<std::string, Known, Hash, std::equal_to<>> known_;
  std::vector<int32_t> known_ids_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates_;
  std::vector<size_t> of_one_rank_;
};

}  // namespace strait
