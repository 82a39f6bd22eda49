#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strait/tokenizer/tokenizer_files.h"
#include "strait/tokenizer/vocabulary.h"

// What both forms of a tokenizer's files have: vocab.json with merges.txt, and tokenizer.json. Functions throw
// InputError that names the file.
namespace strait {

/// The id of a token, an integer from 0 on.
int32_t id_in(const std::string& file, const std::string& token, const nlohmann::json& id);

/// Adds an object's tokens with their ids.
void add_vocabulary(const nlohmann::json& object, Vocabulary& vocabulary);

/// As BpeModel::added_tokens has them.
void sort_longest_first(std::vector<AddedToken>& tokens);

/// Collects the merges, in order of rank. `where` names the file and the line or number of a merge.
class MergeReader {
 public:
  /// The tokens, which must outlive this.
  explicit MergeReader(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  /// `left right`
  void add(const std::string& where, std::string_view line);

  /// The tokens that become one, as the file writes them.
  void add(const std::string& where, const std::string& left, const std::string& right);

  /// All of them.
  std::vector<BpeModel::Merge> take() { return std::move(merges_); }

 private:
  int32_t id_of(const std::string& where, const std::string& shown) const;

  const Vocabulary& vocabulary_;
  std::set<std::pair<int32_t, int32_t>> pairs_;
  std::vector<BpeModel::Merge> merges_;
};

}  // namespace strait
