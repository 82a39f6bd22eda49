#include "strait/data/text_source.h"

#include <algorithm>

#include "strait/tokenizer/bpe_encoder.h"

namespace strait {
namespace {

/// The line that begins at `start`, with its newline where it has one.
std::string_view line_at(std::string_view text, size_t start) {
  const size_t newline = text.find('\n', start);
  return text.substr(start, newline == std::string_view::npos ? newline : newline + 1 - start);
}

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos; }

/// ` = Title = `, but not ` = = Section = = `.
bool is_title(std::string_view line) {
  return line.starts_with(" = ") && line.ends_with(" = \n") && !line.starts_with(" = = ");
}

/// Blank lines on both sides tell a title from a line of a list of abbreviations.
std::vector<size_t> article_starts(std::string_view text) {
  std::vector<size_t> starts = {0};
  bool in_article = false;
  bool after_blank = true;
  for (size_t start = 0; start < text.size();) {
    const auto line = line_at(text, start);
    const size_t next = start + line.size();
    if (after_blank && is_title(line) && is_blank(line_at(text, next))) {
      if (in_article) starts.push_back(start);
      in_article = true;
    }
    after_blank = is_blank(line);
    start = next;
  }
  return starts;
}

std::vector<size_t> line_starts(std::string_view text) {
  std::vector<size_t> starts;
  for (size_t start = 0; start < text.size(); start += line_at(text, start).size()) starts.push_back(start);
  return starts;
}

}  // namespace

std::string_view to_string(TextForm form) {
  switch (form) {
    case TextForm::wikitext:
      return "wikitext";
    case TextForm::plain:
      return "plain";
    case TextForm::marked:
      break;
  }
  return "marked";
}

std::string_view range_of_text(std::string_view text, double begin, double end, TextForm form) {
  const auto starts = form == TextForm::wikitext ? article_starts(text) : line_starts(text);
  const auto cut = [&](double share) {
    const auto first = std::ranges::lower_bound(starts, share * static_cast<double>(text.size()), {},
                                                [](size_t start) { return static_cast<double>(start); });
    return first == starts.end() ? text.size() : *first;
  };
  const size_t first = cut(begin);
  return text.substr(first, cut(end) - first);
}

EncodedText encode_text(const Tokenizer& tokenizer, std::string_view text, TextForm form) {
  EncodedText encoded;
  BpeEncoder encoder(tokenizer);
  if (form != TextForm::wikitext) {
    encoder.append(text, encoded.tokens,
                   form == TextForm::marked ? SpecialTokens::as_tokens : SpecialTokens::as_text);
    encoded.group_ends = {encoded.tokens.size()};
    return encoded;
  }
  int64_t lines = 0;
  for (size_t start = 0; start < text.size();) {
    const auto line = line_at(text, start);
    if (!is_blank(line)) encoder.append(line, encoded.tokens);
    if (++lines % kLinesInGroup == 0) encoded.group_ends.push_back(encoded.tokens.size());
    start += line.size();
  }
  if (lines % kLinesInGroup != 0) encoded.group_ends.push_back(encoded.tokens.size());
  return encoded;
}

std::vector<int32_t> cut_into_blocks(const EncodedText& text, int64_t block) {
  std::vector<int32_t> blocks;
  uint64_t begin = 0;
  for (const uint64_t end : text.group_ends) {
    const uint64_t used = (end - begin) / static_cast<uint64_t>(block) * static_cast<uint64_t>(block);
    const auto first = text.tokens.begin() + static_cast<ptrdiff_t>(begin);
    blocks.insert(blocks.end(), first, first + static_cast<ptrdiff_t>(used));
    begin = end;
  }
  return blocks;
}

}  // namespace strait
