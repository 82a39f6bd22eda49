#include "strait/tokenizer/pre_tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "strait/base/error.h"
#include "strait/base/utf8.h"

namespace strait {
namespace {

// GPT-2's pattern. Its \s is Unicode's White_Space there; PCRE2's own \s has U+180E as well.
constexpr std::string_view kPattern =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\p{White_Space}\\p{L}\\p{N}]+"
    "|\\p{White_Space}+(?!\\P{White_Space})|\\p{White_Space}+";

/// The compiled pattern, made once. It is anchored: some branch takes any character, so a piece begins where
/// the last one ended.
const pcre2_code* pattern() {
  static const pcre2_code* const kCode = [] {
    int error = 0;
    size_t offset = 0;
    pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(kPattern.data()), kPattern.size(),
                                     PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &error, &offset, nullptr);
    if (code == nullptr)
      throw Error("the system's PCRE2 cannot compile the pattern of pieces (error {})", error);
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // where that fails, matching is slower and gives the same
    return code;
  }();
  return kCode;
}

}  // namespace

struct PreTokenizer::Match {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  Match() = default;
  ~Match() { pcre2_match_data_free(data); }
  Match(const Match&) = delete;
  Match& operator=(const Match&) = delete;
};

PreTokenizer::PreTokenizer(std::string_view text) : text_(text), match_(std::make_unique<Match>()) {}

PreTokenizer::~PreTokenizer() = default;

std::optional<std::string_view> PreTokenizer::next() {
  if (position_ == text_.size()) return std::nullopt;
  if (position_ >= well_formed_) well_formed_ = position_ + well_formed_prefix(text_.substr(position_));
  size_t end = position_ + 1;
  if (well_formed_ > position_) {
    const int found = pcre2_match(pattern(), reinterpret_cast<PCRE2_SPTR>(text_.data()), well_formed_,
                                  position_, PCRE2_NO_UTF_CHECK, match_->data, nullptr);
    STRAIT_CHECK(found > 0, "PCRE2 gives {} at byte {}", found, position_);
    end = pcre2_get_ovector_pointer(match_->data)[1];
    STRAIT_CHECK(end > position_, "an empty piece at byte {}", position_);
  }
  const auto piece = text_.substr(position_, end - position_);
  position_ = end;
  return piece;
}

}  // namespace strait
