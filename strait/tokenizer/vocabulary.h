#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace strait {

/// `text`, cut where it is long: what a message shows of a file.
std::string shortened(std::string_view text);

/// The same in quotation marks.
std::string quoted_short(std::string_view text);

/// The bytes that `shown`, well-formed UTF-8 in GPT-2's alphabet of bytes, stands for; nothing where a
/// character stands for no byte.
std::optional<std::string> bytes_of_alphabet(std::string_view shown);

/// The tokens of a file while they are read. Functions throw InputError that names the file.
class Vocabulary {
 public:
  /// No tokens yet; `file` is for messages.
  explicit Vocabulary(std::string file) : file_(std::move(file)) {}

  /// The name for messages.
  const std::string& file() const { return file_; }

  /// A token in the alphabet of bytes.
  void add_shown(const std::string& shown, int32_t id);

  /// A token as it stands in a text. One that is there already must have the same id.
  void add(const std::string& bytes, int32_t id);

  /// The id of the token with these bytes, where there is one.
  std::optional<int32_t> find(const std::string& bytes) const;

  /// All tokens by id, when the ids are 0 to n - 1 and each byte has a token.
  std::vector<std::string> finish() const;

 private:
  std::string file_;
  std::unordered_map<std::string, int32_t> ids_;
  std::map<int32_t, std::string> tokens_;
};

}  // namespace strait
