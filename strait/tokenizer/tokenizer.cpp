#include "strait/tokenizer/tokenizer.h"

#include <algorithm>
#include <utility>

#include "strait/base/error.h"
#include "strait/tokenizer/bpe_encoder.h"

namespace strait {
namespace {

uint64_t pair_key(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32U | static_cast<uint32_t>(right);
}

template <class Id>
std::string decode_ids(const std::vector<std::string>& tokens, std::span<const Id> ids) {
  std::string bytes;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || static_cast<uint64_t>(ids[i]) >= tokens.size()) {
      throw InputError("token {} has the id {}, expected 0 to {}", i, ids[i], tokens.size() - 1);
    }
    bytes += tokens[static_cast<size_t>(ids[i])];
  }
  return bytes;
}

}  // namespace

Tokenizer::Tokenizer(BpeModel model) : model_(std::move(model)) {
  std::vector<bool> made(model_.tokens.size());
  ranks_.reserve(model_.merges.size());
  for (const auto& merge : model_.merges) {
    ranks_.emplace(pair_key(merge.left, merge.right), static_cast<uint32_t>(ranks_.size()));
    made[static_cast<size_t>(merge.result)] = true;
  }
  for (size_t id = 0; id < made.size(); ++id) {
    const auto& bytes = model_.tokens[id];
    const auto number = static_cast<int32_t>(id);
    if (bytes.size() == 1) {
      byte_tokens_[static_cast<uint8_t>(bytes[0])] = number;
    } else if (!made[id]) {
      special_tokens_.push_back({bytes, number});
    }
  }
  std::ranges::stable_sort(special_tokens_, std::ranges::greater(),
                           [](const Special& special) { return special.text.size(); });
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, SpecialTokens special) const {
  std::vector<int32_t> ids;
  BpeEncoder(*this).append(text, ids, special);
  return ids;
}

std::string Tokenizer::decode(std::span<const int64_t> ids) const { return decode_ids(model_.tokens, ids); }

std::string Tokenizer::decode(std::span<const int32_t> ids) const { return decode_ids(model_.tokens, ids); }

std::optional<uint32_t> Tokenizer::rank(int32_t left, int32_t right) const {
  const auto found = ranks_.find(pair_key(left, right));
  return found == ranks_.end() ? std::nullopt : std::optional(found->second);
}

Tokenizer load_tokenizer(const std::filesystem::path& folder) {
  return Tokenizer(parse_tokenizer_files(read_tokenizer_files(folder)));
}

}  // namespace strait
