#include "strait/tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "strait/base/error.h"
#include "strait/base/utf8.h"

namespace strait {
namespace {

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

const utf8proc_uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const utf8proc_uint8_t*>(text.data());
}

/// Of well-formed text.
void append_composed(std::string_view text, std::string& out) {
  utf8proc_uint8_t* result = nullptr;
  const auto size = utf8proc_map(bytes_of(text), static_cast<utf8proc_ssize_t>(text.size()), &result,
                                 static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(result, &std::free);
  STRAIT_CHECK(size >= 0, "utf8proc: {}", utf8proc_errmsg(size));
  out.append(reinterpret_cast<const char*>(result), static_cast<size_t>(size));
}

bool is_space(utf8proc_int32_t character) {
  if ((character >= '\t' && character <= '\r') || character == 0x85) return true;
  const auto category = utf8proc_category(character);
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

}  // namespace

std::string composed(std::string_view text) {
  std::string out;
  if (is_ascii(text)) return out.assign(text);
  while (!text.empty()) {
    const size_t good = well_formed_prefix(text);
    if (good > 0) append_composed(text.substr(0, good), out);
    text.remove_prefix(good);
    if (text.empty()) break;
    out += text.front();
    text.remove_prefix(1);
  }
  return out;
}

size_t leading_space(std::string_view text) {
  size_t size = 0;
  while (size < text.size()) {
    utf8proc_int32_t character = -1;
    const auto rest = text.substr(size);
    const auto bytes = utf8proc_iterate(bytes_of(rest), static_cast<utf8proc_ssize_t>(rest.size()), &character);
    if (bytes <= 0 || !is_space(character)) break;
    size += static_cast<size_t>(bytes);
  }
  return size;
}

}  // namespace strait
