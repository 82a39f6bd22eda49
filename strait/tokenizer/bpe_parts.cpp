#include "strait/tokenizer/bpe_parts.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "strait/base/error.h"
#include "strait/base/text.h"

namespace strait {

int32_t id_in(const std::string& file, const std::string& token, const nlohmann::json& id) {
  constexpr auto kMost = std::numeric_limits<int32_t>::max();
  if (id.is_number_unsigned() && id.get<uint64_t>() <= kMost) return id.get<int32_t>();
  throw InputError("{}: the id of token {} is {}, expected an integer from 0 on", file, in_quotes(token),
                   shortened(id.dump()));
}

void add_vocabulary(const nlohmann::json& object, Vocabulary& vocabulary) {
  for (const auto& [token, id] : object.items()) {
    vocabulary.add_shown(token, id_in(vocabulary.file(), token, id));
  }
}

void sort_longest_first(std::vector<AddedToken>& tokens) {
  std::ranges::stable_sort(tokens, std::ranges::greater(), [](const auto& token) { return token.text.size(); });
}

void MergeReader::add(const std::string& where, std::string_view line) {
  const auto parts = split(line, ' ');
  if (parts.size() != 2) {
    throw InputError("{}: expected two tokens with a space between them, found {}", where, in_quotes(line));
  }
  add(where, parts[0], parts[1]);
}

void MergeReader::add(const std::string& where, const std::string& left, const std::string& right) {
  const BpeModel::Merge merge{id_of(where, left), id_of(where, right), id_of(where, left + right)};
  if (!pairs_.emplace(merge.left, merge.right).second) {
    throw InputError("{}: the merge of {} and {} is there already", where, in_quotes(left), in_quotes(right));
  }
  merges_.push_back(merge);
}

int32_t MergeReader::id_of(const std::string& where, const std::string& shown) const {
  const auto id = vocabulary_.find_shown(shown);
  if (!id) throw InputError("{}: {} is no token of {}", where, in_quotes(shown), vocabulary_.file());
  return *id;
}

}  // namespace strait
