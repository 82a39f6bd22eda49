#include "strait/tokenizer/piece_pattern.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/base/utf8.h"

namespace strait {
namespace {

/// White space is Unicode's White_Space there; PCRE2's own \s has U+180E as well.
constexpr std::string_view kSpace = "\\p{White_Space}";
constexpr std::string_view kNoSpace = "\\P{White_Space}";

bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

bool is_general_category(std::string_view name) {
  constexpr std::array<std::string_view, 7> kOf = {"Lulltmo", "Mnce", "Ndlo", "Pcdseifo",
                                                   "Smcko",   "Zslp", "Ccfon"};
  if (name.empty() || name.size() > 2) return false;
  for (const auto& letters : kOf) {
    if (letters[0] == name[0]) return name.size() == 1 || letters.find(name[1], 1) != std::string_view::npos;
  }
  return false;
}

/// A pattern of Oniguruma's in PCRE2's dialect, part by part. What the two read differently is refused.
class Translation {
 public:
  explicit Translation(std::string_view from) : from_(from) {}

  std::string run() {
    while (place_ < from_.size()) {
      const char c = from_[place_];
      if (c == '\\') {
        escape();
      } else if (in_class_) {
        member(c);
      } else {
        part(c);
      }
    }
    return std::move(to_);
  }

 private:
  bool goes_on_with(std::string_view text) const { return from_.substr(place_).starts_with(text); }

  [[noreturn]] void refuse(std::string_view what) const {
    throw InputError("expected a pattern without {}, found it at byte {}", shortened(what), place_);
  }

  /// What begins here, with the whole character that is its last of so many.
  std::string_view here(size_t count) const {
    const auto last = from_.substr(std::min(from_.size(), place_ + count - 1));
    return from_.substr(place_, count - 1 + std::max<size_t>(first_character(last), 1));
  }

  void take(size_t count) {
    to_ += from_.substr(place_, count);
    place_ += count;
  }

  void put(std::string_view text, size_t count) {
    to_ += text;
    place_ += count;
  }

  void escape() {
    if (place_ + 1 == from_.size()) refuse("\\");
    switch (const char c = from_[place_ + 1]) {
      case 's':
        return put(kSpace, 2);
      case 'S':
        return put(kNoSpace, 2);
      case 'd':
        return put("\\p{Nd}", 2);
      case 'D':
        return put("\\P{Nd}", 2);
      case 'r':
      case 'n':
      case 't':
      case 'f':
        return take(2);
      case 'p':
      case 'P':
        return category();
      default:
        if (is_letter_or_digit(c) || static_cast<unsigned char>(c) >= 0x80) refuse(here(2));
        return take(2);
    }
  }

  void category() {
    const size_t end = from_.find('}', place_);
    const bool has_name = from_.substr(place_ + 2).starts_with('{') && end != std::string_view::npos;
    const auto name = has_name ? from_.substr(place_ + 3, end - place_ - 3) : std::string_view();
    if (!is_general_category(name)) refuse(has_name ? from_.substr(place_, end + 1 - place_) : here(2));
    if (ignores_case()) refuse("a category where case does not count");
    take(end + 1 - place_);
  }

  bool ignores_case() const { return !groups_.empty() && groups_.back(); }

  void member(char c) {
    if (c == '[' || goes_on_with("&&")) refuse(from_.substr(place_, c == '[' ? 1 : 2));
    in_class_ = c != ']';
    take(1);
  }

  void part(char c) {
    if (c == '[') {
      take(goes_on_with("[^") ? 2 : 1);
      if (goes_on_with("]")) refuse("an empty class");
      in_class_ = true;
    } else if (c == '(') {
      group();
    } else if (c == ')') {
      if (groups_.empty()) refuse(")");
      groups_.pop_back();
      take(1);
    } else if (c == '{') {
      count();
    } else {
      take(1);
    }
  }

  void group() {
    constexpr std::array<std::string_view, 7> kKinds = {"(?i:", "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"};
    size_t length = 1;
    for (const auto& kind : kKinds) {
      if (goes_on_with(kind)) length = kind.size();
    }
    if (length == 1 && (goes_on_with("(?") || goes_on_with("(*"))) refuse(here(3));
    groups_.push_back(ignores_case() || goes_on_with("(?i:"));
    take(length);
  }

  /// {n}, {n,} or {n,m}, which `+` must not follow, nor `?` the first: the dialects take these differently.
  void count() {
    size_t end = place_ + 1;
    while (end < from_.size() && ((from_[end] >= '0' && from_[end] <= '9') || from_[end] == ',')) ++end;
    const auto inside = from_.substr(place_ + 1, end - place_ - 1);
    const bool is_count = end < from_.size() && from_[end] == '}' && !inside.empty() && inside[0] != ',' &&
                          split(inside, ',').size() <= 2;
    const auto behind = from_.substr(std::min(end + 1, from_.size()));
    const bool is_exact = inside.find(',') == std::string_view::npos;
    if (!is_count || behind.starts_with('+') || (is_exact && behind.starts_with('?'))) refuse("{");
    take(end + 1 - place_);
  }

  std::string_view from_;
  std::string to_;
  size_t place_ = 0;
  bool in_class_ = false;
  std::vector<bool> groups_;  ///< those that are open: whether case does not count in them
};

}  // namespace

struct PiecePattern::Code {
  explicit Code(std::string_view pattern) {
    int error = 0;
    size_t offset = 0;
    constexpr uint32_t kOptions = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
    code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), kOptions, &error,
                         &offset, nullptr);
    if (code == nullptr) {
      std::array<PCRE2_UCHAR, 256> message{};
      pcre2_get_error_message(error, message.data(), message.size());
      throw InputError("expected a regular expression: {}", reinterpret_cast<const char*>(message.data()));
    }
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // where that fails, matching is slower and gives the same
  }
  bool matches_empty() const {
    uint32_t may = 0;
    pcre2_pattern_info(code, PCRE2_INFO_MATCHEMPTY, &may);
    return may != 0;
  }
  ~Code() { pcre2_code_free(code); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  pcre2_code* code = nullptr;
};

PiecePattern::PiecePattern(std::string_view pcre2) : code_(std::make_shared<const Code>(pcre2)) {}

PiecePattern PiecePattern::of_gpt2() {
  static const PiecePattern kPattern =
      of_oniguruma("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+");
  return kPattern;
}

PiecePattern PiecePattern::of_oniguruma(std::string_view pattern) {
  PiecePattern made(Translation(pattern).run());
  if (made.code_->matches_empty()) throw InputError("expected a pattern that matches no empty text");
  return made;
}

PiecePattern PiecePattern::of_text(std::string_view text) {
  if (text.empty()) throw InputError("expected a text, found an empty one");
  std::string pattern;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x80 && !is_letter_or_digit(c)) pattern += '\\';
    pattern += c;
  }
  return PiecePattern(pattern);
}

PiecePattern PiecePattern::alone() const {
  PiecePattern pattern = *this;
  pattern.is_alone_ = true;
  return pattern;
}

std::optional<PiecePattern::Match> PiecePattern::find(std::string_view text, size_t from) const {
  struct Data {
    pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
    ~Data() { pcre2_match_data_free(data); }
  };
  thread_local const Data kData;
  const auto match = [&](uint32_t options) {
    return pcre2_match(code_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, options,
                       kData.data, nullptr);
  };
  int found = match(PCRE2_NO_UTF_CHECK);
  if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = match(PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT);
  if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (found < 0) {
    throw InputError("the tokenizer's pattern takes too long at byte {} of {} (PCRE2's error {})", from,
                     text.size(), found);
  }
  const size_t* const place = pcre2_get_ovector_pointer(kData.data);
  return Match{place[0], place[1]};
}

}  // namespace strait
