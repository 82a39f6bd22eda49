#include "strait/tokenizer/pre_tokenizer.h"

#include "strait/base/utf8.h"

namespace strait {

std::string_view PreTokenizer::piece_of(Cut& cut, const PiecePattern& pattern) {
  if (!cut.match) cut.match = pattern.find(cut.text, cut.position);
  const size_t begin = cut.position;
  const bool is_match = cut.match && cut.match->begin == begin;
  cut.position = is_match ? cut.match->end : cut.match ? cut.match->begin : cut.text.size();
  if (is_match) cut.match.reset();
  if (!is_match && pattern.is_alone()) return {};
  return cut.text.substr(begin, cut.position - begin);
}

std::optional<std::string_view> PreTokenizer::next() {
  while (true) {
    while (!open_.empty() && open_.back().position == open_.back().text.size()) open_.pop_back();
    std::string_view piece;
    if (!open_.empty()) {
      piece = piece_of(open_.back(), patterns_[open_.size() - 1]);
      if (piece.empty()) continue;
    } else {
      if (position_ == text_.size()) return std::nullopt;
      const auto rest = text_.substr(position_);
      piece = rest.substr(0, well_formed_prefix(rest));
      const bool is_malformed = piece.empty();
      if (is_malformed) piece = rest.substr(0, 1);
      position_ += piece.size();
      if (is_malformed) return piece;
    }
    if (open_.size() == patterns_.size()) return piece;
    open_.push_back({piece, 0, {}});
  }
}

}  // namespace strait
