#pragma once

#include <array>
#include <cstdint>
#include <functional>
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

/// How a file writes tokens.
enum class Writing : uint8_t {
  alphabet,   ///< of bytes, GPT-2's
  characters  ///< as texts with U+2581 for a space, and `<0x00>` to `<0xFF>` for single bytes
};

/// The tokens of a file while they are read. Functions throw InputError that names the file.
class Vocabulary {
 public:
  /// No tokens yet; `file` is for messages.
  explicit Vocabulary(std::string file, Writing writing = Writing::alphabet)
      : file_(std::move(file)), writing_(writing) {
    bytes_.fill(-1);
  }

  /// The name for messages.
  const std::string& file() const { return file_; }

  /// A token as the file writes it, or the text of a token of that id that was added before.
  void add_shown(const std::string& shown, int32_t id);

  /// A token beside the vocabulary, as it stands in a text. Another may have the same bytes.
  void add(const std::string& text, int32_t id);

  /// The id of the token of the vocabulary that the file writes so, where there is one.
  std::optional<int32_t> find_shown(const std::string& shown) const;

  /// The token of each byte; -1 where there is none.
  const std::array<int32_t, 256>& byte_tokens() const { return bytes_; }

  /// The tokens of the vocabulary that are one character; none in the alphabet of bytes.
  std::map<std::string, int32_t, std::less<>> characters() const;

  /// The bytes of all tokens by id; of an id without a token none.
  std::vector<std::string> finish() const;

  /// Refuses ids that are not 0 to n - 1.
  void check_has_no_gaps() const;

  /// Refuses bytes without a token.
  void check_has_bytes() const;

  /// Refuses a space without a token.
  void check_has_space() const;

 private:
  std::optional<std::string> bytes_of(const std::string& shown) const;
  std::string text_of(const std::string& added) const;
  void put(const std::string& bytes, int32_t id);

  std::string file_;
  Writing writing_;
  std::array<int32_t, 256> bytes_{};
  std::unordered_map<std::string, int32_t> shown_;  ///< of the vocabulary, as the file writes them
  std::unordered_map<std::string, int32_t> ids_;    ///< of the same by their bytes, but those of single bytes
  std::unordered_map<std::string, int32_t> added_;  ///< of texts
  std::map<int32_t, std::string> tokens_;           ///< all
};

}  // namespace strait
