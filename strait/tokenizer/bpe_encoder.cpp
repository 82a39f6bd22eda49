#include "strait/tokenizer/bpe_encoder.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "strait/base/utf8.h"
#include "strait/tokenizer/normalizer.h"
#include "strait/tokenizer/pre_tokenizer.h"
#include "strait/tokenizer/unicode.h"

namespace strait {
namespace {

constexpr int32_t kGone = -1;
constexpr size_t kNone = std::numeric_limits<size_t>::max();
constexpr size_t kMostKnown = size_t{1} << 18;
constexpr size_t kLongestKnown = 64;  // bytes; longer pieces hardly come again

/// Where the white space begins that ends the text.
size_t trailing_space(std::string_view text) {
  for (size_t place = 0; place < text.size();) {
    const auto rest = text.substr(place);
    const size_t space = leading_space(rest);
    if (space == rest.size()) return place;
    place += space > 0 ? space : std::max<size_t>(first_character(rest), 1);
  }
  return text.size();
}

}  // namespace

BpeEncoder::Finder::Finder(std::vector<const AddedToken*> tokens) : tokens_(std::move(tokens)) {
  std::ranges::stable_sort(tokens_, {}, &AddedToken::text);
  const auto is_same = [](const AddedToken* one, const AddedToken* other) { return one->text == other->text; };
  tokens_.erase(std::unique(tokens_.begin(), tokens_.end(), is_same), tokens_.end());
  std::vector<size_t> open;  // those that begin the last text, the shortest first
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const std::string& text = tokens_[i]->text;
    while (!open.empty() && !text.starts_with(tokens_[open.back()]->text)) open.pop_back();
    beginnings_.push_back(open.empty() ? kNone : open.back());
    open.push_back(i);
    if (first_bytes_.find(text.front()) == std::string::npos) first_bytes_ += text.front();
  }
}

// A token that begins the text comes before the text, and all between the two begin with that token.
const AddedToken* BpeEncoder::Finder::at_begin_of(std::string_view text) const {
  const auto behind = std::ranges::upper_bound(
      tokens_, text, {}, [](const AddedToken* token) { return std::string_view(token->text); });
  if (behind == tokens_.begin()) return nullptr;
  auto place = static_cast<size_t>(behind - tokens_.begin()) - 1;
  const auto common = std::ranges::mismatch(text, tokens_[place]->text).in1 - text.begin();
  while (place != kNone && tokens_[place]->text.size() > static_cast<size_t>(common))
    place = beginnings_[place];
  return place == kNone ? nullptr : tokens_[place];
}

BpeEncoder::BpeEncoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
  for (const SpecialTokens special : {SpecialTokens::as_text, SpecialTokens::as_tokens}) {
    std::array<std::vector<const AddedToken*>, 2> tokens;  // given and normalized
    for (const auto& token : tokenizer.added_tokens()) {
      if (token.is_special && special == SpecialTokens::as_text) continue;
      tokens[token.is_normalized ? 1 : 0].push_back(&token);
    }
    given_[static_cast<size_t>(special)] = Finder(std::move(tokens[0]));
    normalized_[static_cast<size_t>(special)] = Finder(std::move(tokens[1]));
  }
}

/// Appends the tokens of the finder that stand in the text, from left to right, and calls rest(part) for what
/// lies between them.
template <class Rest>
void BpeEncoder::take_out(const Finder& finder, std::string_view text, std::vector<int32_t>& ids,
                          const Rest& rest) {
  size_t done = 0;
  size_t begin = 0;
  size_t space_end = 0;  // of the run of white space that was looked at last
  while ((begin = finder.candidate(text, begin)) != std::string_view::npos) {
    const AddedToken* found = finder.at_begin_of(text.substr(begin));
    if (found == nullptr) {
      ++begin;
      continue;
    }
    const AddedToken& token = *found;
    // White space that the last token took may be a token itself.
    const auto before = begin > done ? text.substr(done, begin - done) : "";
    rest(token.takes_space_before ? before.substr(0, trailing_space(before)) : before);
    ids.push_back(token.id);
    begin += token.text.size();
    done = begin;
    if (!token.takes_space_behind) continue;
    // Tokens of white space may stand in a run one behind the other; they are whole characters.
    if (begin >= space_end) space_end = begin + leading_space(text.substr(begin));
    done = space_end;
  }
  rest(text.substr(done));
}

void BpeEncoder::append(std::string_view text, std::vector<int32_t>& ids, SpecialTokens special) {
  const auto mode = static_cast<size_t>(special);
  take_out(given_[mode], text, ids, [&](std::string_view part) {
    std::string room;
    const std::string_view form = tokenizer_.normalizer().first_form(part, room);
    take_out(normalized_[mode], form, ids, [&](std::string_view rest) {
      const bool begins = part.data() == text.data() && rest.data() == form.data();
      std::string room_of_rest;
      append_pieces(tokenizer_.normalizer().last_form(rest, begins, room_of_rest), ids);
    });
  });
}

void BpeEncoder::append_pieces(std::string_view text, std::vector<int32_t>& ids) {
  PreTokenizer pieces(text, tokenizer_.patterns());
  while (const auto piece = pieces.next()) append_piece(*piece, ids);
}

void BpeEncoder::append_piece(std::string_view piece, std::vector<int32_t>& ids) {
  if (const auto known = known_.find(piece); known != known_.end()) {
    const auto first = known_ids_.begin() + static_cast<ptrdiff_t>(known->second.first);
    ids.insert(ids.end(), first, first + static_cast<ptrdiff_t>(known->second.count));
    return;
  }
  const size_t before = ids.size();
  merge_piece(piece, ids);
  if (piece.size() > kLongestKnown || known_.size() == kMostKnown) return;
  known_.emplace(piece, Known{known_ids_.size(), ids.size() - before});
  known_ids_.insert(known_ids_.end(), ids.begin() + static_cast<ptrdiff_t>(before), ids.end());
}

void BpeEncoder::merge_piece(std::string_view piece, std::vector<int32_t>& ids) {
  if (const auto whole = tokenizer_.whole(piece)) {
    ids.push_back(*whole);
    return;
  }
  symbols_.clear();
  const auto add = [&](int32_t id) {
    const size_t place = symbols_.size();
    symbols_.push_back({id, place == 0 ? kNone : place - 1, place + 1});
  };
  for (size_t length = 0; !piece.empty(); piece.remove_prefix(length)) {
    length = std::max<size_t>(first_character(piece), 1);
    const auto character = piece.substr(0, length);
    if (const auto id = tokenizer_.character_token(character)) {
      add(*id);
      continue;
    }
    for (const char byte : character) {
      if (const int32_t id = tokenizer_.byte_token(static_cast<uint8_t>(byte)); id >= 0) add(id);
    }
  }
  if (symbols_.empty()) return;
  symbols_.back().next = kNone;
  for (size_t i = 0; i < symbols_.size(); ++i) consider(i);
  while (!candidates_.empty()) {
    if (tokenizer_.merges_by_rank())
      merge_lowest_rank();
    else
      merge_first();
  }
  for (size_t i = 0; i != kNone; i = symbols_[i].next) ids.push_back(symbols_[i].id);
}

/// All pairs of a rank go before a pair that the first of them makes, even where files rank that one lower.
void BpeEncoder::merge_lowest_rank() {
  const uint32_t rank = candidates_.top().rank;
  of_one_rank_.clear();
  for (; !candidates_.empty() && candidates_.top().rank == rank; candidates_.pop()) {
    of_one_rank_.push_back(candidates_.top().left);
  }
  for (const size_t left : of_one_rank_) {
    if (has_rank(left, rank)) join(left);
  }
}

void BpeEncoder::merge_first() {
  const auto [rank, left] = candidates_.top();
  candidates_.pop();
  if (has_rank(left, rank)) join(left);
}

void BpeEncoder::join(size_t left) {
  Symbol& symbol = symbols_[left];
  Symbol& right = symbols_[symbol.next];
  symbol.id = tokenizer_.merged(*tokenizer_.rank(symbol.id, right.id));
  right.id = kGone;
  symbol.next = right.next;
  if (symbol.next != kNone) symbols_[symbol.next].previous = left;
  if (symbol.previous != kNone) consider(symbol.previous);
  consider(left);
}

void BpeEncoder::consider(size_t left) {
  const Symbol& symbol = symbols_[left];
  if (symbol.next == kNone) return;
  if (const auto rank = tokenizer_.rank(symbol.id, symbols_[symbol.next].id)) candidates_.push({*rank, left});
}

/// A candidate may have lost one of its symbols since.
bool BpeEncoder::has_rank(size_t left, uint32_t rank) const {
  const Symbol& symbol = symbols_[left];
  return symbol.id != kGone && symbol.next != kNone &&
         tokenizer_.rank(symbol.id, symbols_[symbol.next].id) == rank;
}

}  // namespace strait
