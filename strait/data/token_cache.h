#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "strait/data/text_source.h"
#include "strait/tokenizer/tokenizer_files.h"

namespace strait {

/// What the tokens of a text depend on, as a name: a sum over the text, the tokenizer's files and the form.
std::string token_key(std::span<const NamedText> tokenizer_files, std::string_view text, TextForm form);

/// Encoded texts in files of a folder, so that the next run need not encode them again. It can only save time:
/// a folder that cannot be written, and a file that is missing, damaged or of another version, are as no cache.
/// A file gets its name when it is whole, so processes may store the same text at the same time. Nothing is
/// ever removed.
class TokenCache {
 public:
  /// Without a name of a folder nothing is found or stored. The folder is made where it is missing.
  explicit TokenCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// The text that was stored under the key, or nothing: also where it has tokens that are none of the
  /// `vocab` ids from 0 on, or groups that do not lie one behind the other up to its end. Does not throw.
  std::optional<EncodedText> find(const std::string& key, int64_t vocab) const;

  /// Stores the text under its token_key(). Does not throw: where it cannot be stored it is not.
  void store(const std::string& key, const EncodedText& text) const;

  /// Where a text lies or would lie.
  std::filesystem::path file_of(const std::string& key) const { return folder_ / (key + ".tokens"); }

 private:
  std::filesystem::path folder_;
};

/// STRAIT_CACHE, or strait/ under XDG_CACHE_HOME or ~/.cache. Empty, for no cache, where STRAIT_CACHE is set
/// and empty or there is no home.
std::filesystem::path token_cache_folder();

}  // namespace strait
