#include "strait/tokenizer/tokenizer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "strait/base/error.h"
#include "strait/tokenizer/bpe_encoder.h"

namespace strait {
namespace {

uint64_t pair_key(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32U | static_cast<uint32_t>(right);
}

/// The bytes of a token by its id.
struct BytesOf {
  const std::vector<std::string>& tokens;
  std::string_view operator()(int32_t id) const { return tokens[static_cast<size_t>(id)]; }
};

template <class Id>
std::string decode_ids(const Tokenizer& tokenizer, std::span<const Id> ids) {
  std::string bytes;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= tokenizer.vocab_size())
      throw InputError("token {} has the id {}, expected 0 to {}", i, ids[i], tokenizer.vocab_size() - 1);
    bytes += tokenizer.bytes_of(ids[i]);
  }
  const bool has_own_space = tokenizer.normalizer().first_space != FirstSpace::none;
  if (has_own_space && bytes.starts_with(' ')) bytes.erase(0, 1);
  return bytes;
}

}  // namespace

Tokenizer::Tokenizer(BpeModel model) : model_(std::move(model)) {
  ranks_.reserve(model_.merges.size());
  for (const auto& merge : model_.merges)
    ranks_.emplace(pair_key(merge.left, merge.right), static_cast<uint32_t>(ranks_.size()));
  if (!model_.whole_pieces) return;
  whole_.resize(model_.tokens.size());
  std::iota(whole_.begin(), whole_.end(), 0);
  std::vector<bool> is_added(whole_.size());
  for (const auto& added : model_.added_tokens) is_added[static_cast<size_t>(added.id)] = true;
  std::erase_if(whole_, [&](int32_t id) { return is_added[static_cast<size_t>(id)]; });
  std::ranges::sort(whole_, {}, BytesOf{model_.tokens});
}

std::optional<int32_t> Tokenizer::added_token(std::string_view text) const {
  // By its own text: those that are normalized have another one to be found by.
  const auto own_text = [&](const AddedToken& token) { return bytes_of(token.id); };
  const auto found = std::ranges::find(model_.added_tokens, text, own_text);
  return found == model_.added_tokens.end() ? std::nullopt : std::optional(found->id);
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, SpecialTokens special) const {
  std::vector<int32_t> ids;
  BpeEncoder(*this).append(text, ids, special);
  return ids;
}

std::string Tokenizer::decode(std::span<const int64_t> ids) const { return decode_ids(*this, ids); }

std::string Tokenizer::decode(std::span<const int32_t> ids) const { return decode_ids(*this, ids); }

std::string_view Tokenizer::bytes_of(int64_t id) const {
  STRAIT_CHECK(id >= 0 && id < vocab_size(), "no token {}", id);
  return model_.tokens[static_cast<size_t>(id)];
}

std::optional<int32_t> Tokenizer::character_token(std::string_view character) const {
  const auto found = model_.characters.find(character);
  return found == model_.characters.end() ? std::nullopt : std::optional(found->second);
}

std::optional<uint32_t> Tokenizer::rank(int32_t left, int32_t right) const {
  const auto found = ranks_.find(pair_key(left, right));
  return found == ranks_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<int32_t> Tokenizer::whole(std::string_view piece) const {
  const auto found = std::ranges::lower_bound(whole_, piece, {}, BytesOf{model_.tokens});
  if (found == whole_.end() || model_.tokens[static_cast<size_t>(*found)] != piece) return std::nullopt;
  return *found;
}

Tokenizer load_tokenizer(const std::filesystem::path& folder) {
  return Tokenizer(parse_tokenizer_files(read_tokenizer_files(folder)));
}

}  // namespace strait
