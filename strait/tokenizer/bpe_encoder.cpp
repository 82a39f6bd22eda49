#include "strait/tokenizer/bpe_encoder.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "strait/base/utf8.h"
#include "strait/tokenizer/pre_tokenizer.h"
#include "strait/tokenizer/unicode.h"

namespace strait {
namespace {

constexpr int32_t kGone = -1;
constexpr size_t kNone = std::numeric_limits<size_t>::max();
constexpr size_t kMostKnown = size_t{1} << 18;
constexpr size_t kLongestKnown = 64;  // bytes; longer pieces hardly come again

/// Where special tokens stand in a text, found from left to right.
class SpecialFinder {
 public:
  SpecialFinder(const std::vector<SpecialToken>& specials, std::string_view text)
      : specials_(specials), text_(text) {
    for (const auto& special : specials) first_bytes_ += special.text.front();
  }

  struct Found {
    const SpecialToken* token;
    size_t begin;  ///< with the white space that belongs to it
    size_t end;    ///< likewise
  };

  /// The first that begins at `from` or behind it.
  std::optional<Found> find(size_t from) const {
    size_t begin = from;
    for (; (begin = text_.find_first_of(first_bytes_, begin)) != std::string_view::npos; ++begin) {
      const auto rest = text_.substr(begin);
      const auto is_here = [&](const auto& special) { return rest.starts_with(special.text); };
      const auto found = std::ranges::find_if(specials_, is_here);
      if (found == specials_.end()) continue;
      const size_t end = begin + found->text.size();
      return Found{&*found, found->takes_space_before ? trailing_space(from, begin) : begin,
                   found->takes_space_behind ? end + leading_space(text_.substr(end)) : end};
    }
    return std::nullopt;
  }

 private:
  /// Where the white space begins that text_[from, end) ends with.
  size_t trailing_space(size_t from, size_t end) const {
    for (size_t place = from; place < end;) {
      const auto rest = text_.substr(place, end - place);
      const size_t space = leading_space(rest);
      if (space == rest.size()) return place;
      place += space > 0 ? space : std::max<size_t>(first_character(rest), 1);
    }
    return end;
  }

  const std::vector<SpecialToken>& specials_;
  std::string_view text_;
  std::string first_bytes_;
};

}  // namespace

void BpeEncoder::append(std::string_view text, std::vector<int32_t>& ids, SpecialTokens special) {
  size_t done = 0;
  if (special == SpecialTokens::as_tokens) {
    const SpecialFinder finder(tokenizer_.special_tokens(), text);
    while (const auto found = finder.find(done)) {
      append_text(text.substr(done, found->begin - done), ids);
      ids.push_back(found->token->id);
      done = found->end;
    }
  }
  append_text(text.substr(done), ids);
}

void BpeEncoder::append_text(std::string_view text, std::vector<int32_t>& ids) {
  const std::string form = tokenizer_.composes() ? composed(text) : "";
  PreTokenizer pieces(tokenizer_.composes() ? form : text, tokenizer_.patterns());
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
  for (size_t i = 0; i < piece.size(); ++i) {
    symbols_.push_back({tokenizer_.byte_token(static_cast<uint8_t>(piece[i])), i == 0 ? kNone : i - 1,
                        i + 1 == piece.size() ? kNone : i + 1});
  }
  for (size_t i = 0; i < piece.size(); ++i) consider(i);
  while (!candidates_.empty()) merge_lowest_rank();
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
