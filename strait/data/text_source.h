#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "strait/tokenizer/tokenizer.h"

namespace strait {

/// How a text is read.
enum class TextForm : uint8_t {
  /// As the raw files of WikiText-2 become the data set of Hugging Face and then the blocks of its run_clm:
  /// each line is encoded alone with its newline, a line with nothing but white space as nothing, and every
  /// 1,000 lines are a group. Parts are articles, each from its line ` = Title = ` between two blank lines on;
  /// what stands before the first belongs to it.
  wikitext,
  /// As it is: encoded as a whole, one group. Parts are lines.
  plain,
  /// As plain, but special tokens in it are tokens.
  marked
};

/// Lines of a group of TextForm::wikitext: the batch size of Hugging Face's Dataset.map.
inline constexpr int64_t kLinesInGroup = 1000;

/// `wikitext`, `plain` or `marked`.
std::string_view to_string(TextForm form);

/// The parts whose beginning, as a share of the text's bytes, lies in [begin, end). Ranges that follow one
/// another share nothing and leave nothing out; [0, 1] is the whole text.
std::string_view range_of_text(std::string_view text, double begin, double end, TextForm form);

/// A text as tokens.
struct EncodedText {
  std::vector<int32_t> tokens;       ///< of all groups, one behind the other
  std::vector<uint64_t> group_ends;  ///< where in `tokens` each group ends; the last at their end

  bool operator==(const EncodedText&) const = default;
};

/// The tokens of a text of that form.
EncodedText encode_text(const Tokenizer& tokenizer, std::string_view text, TextForm form);

/// The blocks of `block` tokens that each group is cut into, one behind the other; what is left at the end of a
/// group is dropped.
std::vector<int32_t> cut_into_blocks(const EncodedText& text, int64_t block);

}  // namespace strait
