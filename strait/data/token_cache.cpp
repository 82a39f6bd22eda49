#include "strait/data/token_cache.h"

#include <algorithm>
#include <cstdlib>

#include "strait/base/bytes.h"
#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/download/digest.h"

namespace strait {
namespace {

namespace fs = std::filesystem;

/// Changes with the layout of the files and with the way in which text becomes tokens.
constexpr std::string_view kVersion = "strait tokens 4\n";

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string sum_of(std::string_view bytes) {
  Hasher hasher(DigestKind::sha256);
  hasher.update(bytes_of(bytes));
  return hasher.finish().hex;
}

/// Their number and then the values.
template <class T>
void append_values(std::string& out, const std::vector<T>& values) {
  const uint64_t count = values.size();
  out.append(reinterpret_cast<const char*>(&count), sizeof(count));
  out.append(reinterpret_cast<const char*>(values.data()), count * sizeof(T));
}

template <class T>
std::vector<T> take_values(ByteReader& reader) {
  const auto count = reader.get<uint64_t>();
  if (count > reader.left() / sizeof(T)) throw WireError("{} values do not fit", count);
  std::vector<T> values(count);
  if (count > 0) std::memcpy(values.data(), reader.take(count * sizeof(T)).data(), count * sizeof(T));
  return values;
}

/// Whether the text is one of such a vocabulary, and has its groups one behind the other.
bool is_whole(const EncodedText& text, int64_t vocab) {
  const auto& [tokens, ends] = text;
  return std::ranges::is_sorted(ends) && (ends.empty() ? 0 : ends.back()) == tokens.size() &&
         std::ranges::all_of(tokens, [&](int32_t token) { return token >= 0 && token < vocab; });
}

}  // namespace

std::string token_key(std::span<const NamedText> tokenizer_files, std::string_view text, TextForm form) {
  Hasher hasher(DigestKind::sha256);
  const auto add = [&](std::string_view part) {
    const uint64_t size = part.size();
    hasher.update(std::as_bytes(std::span(&size, 1)));
    hasher.update(bytes_of(part));
  };
  add(kVersion);
  add(to_string(form));
  for (const auto& file : tokenizer_files) add(file.text);
  add(text);
  return hasher.finish().hex;
}

// The file: the version, the ends of groups, the tokens, and the SHA-256 sum of all that.
std::optional<EncodedText> TokenCache::find(const std::string& key, int64_t vocab) const {
  if (folder_.empty()) return std::nullopt;
  try {
    const std::string content = read_whole(file_of(key));
    if (!content.starts_with(kVersion)) return std::nullopt;
    ByteReader reader(bytes_of(content).subspan(kVersion.size()));
    EncodedText text;
    text.group_ends = take_values<uint64_t>(reader);
    text.tokens = take_values<int32_t>(reader);
    const size_t end = content.size() - reader.left();
    if (content.substr(end) != sum_of(std::string_view(content).substr(0, end))) return std::nullopt;
    return is_whole(text, vocab) ? std::optional(std::move(text)) : std::nullopt;
  } catch (const Error&) {  // unreadable or cut off
    return std::nullopt;
  }
}

void TokenCache::store(const std::string& key, const EncodedText& text) const {
  if (folder_.empty()) return;
  std::string content(kVersion);
  append_values(content, text.group_ends);
  append_values(content, text.tokens);
  content += sum_of(content);
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  try {
    replace_file(file_of(key), content);
  } catch (const std::exception&) {  // the next run encodes it again
  }
}

fs::path token_cache_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<fs::path>(value);
  };
  if (const auto own = variable("STRAIT_CACHE")) return *own;
  if (const auto shared = variable("XDG_CACHE_HOME"); shared && shared->is_absolute())
    return *shared / "strait";
  if (const auto home = variable("HOME"); home && home->is_absolute()) return *home / ".cache" / "strait";
  return {};
}

}  // namespace strait
