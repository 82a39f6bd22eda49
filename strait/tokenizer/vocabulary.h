#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace strait {

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

  /// A token in the alphabet of bytes, or the text of a token of that id that was added before.
  void add_shown(const std::string& shown, int32_t id);

  /// A token beside the vocabulary, as it stands in a text. Another may have the same bytes.
  void add(const std::string& text, int32_t id);

  /// The id of the token of the vocabulary with these bytes, where there is one.
  std::optional<int32_t> find(const std::string& bytes) const;

  /// The token of each byte; -1 where there is none.
  std::array<int32_t, 256> byte_tokens() const;

  /// The bytes of all tokens by id; of an id without a token none.
  std::vector<std::string> finish() const;

  /// Refuses ids that are not 0 to n - 1, and bytes without a token.
  void check_is_whole() const;

 private:
  void put(const std::string& bytes, int32_t id);

  std::string file_;
  std::unordered_map<std::string, int32_t> ids_;    ///< of the vocabulary
  std::unordered_map<std::string, int32_t> added_;  ///< of texts
  std::map<int32_t, std::string> tokens_;           ///< all
};

}  // namespace strait
