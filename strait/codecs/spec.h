#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strait {

/// A codec as a person writes it: `name[:argument][,option=value]...`, for example
/// `quant:4,scope=sample`. Factories take what they understand and call finish().
class CodecSpec {
 public:
  /// Splits the text; throws InputError when it is not of that form.
  static CodecSpec parse(std::string_view text);

  /// The whole spec.
  const std::string& text() const { return text_; }

  /// The part before the colon or the first comma.
  const std::string& name() const { return name_; }

  /// The part behind the colon; throws InputError naming `what` when there is none.
  const std::string& argument(std::string_view what) const;

  /// Throws InputError when the spec has a part behind a colon.
  void no_argument() const;

  /// The option's value, or `fallback` where the spec does not set it. Marks the option as understood.
  std::string option(const std::string& key, std::string fallback);

  /// Throws InputError: `value` is not one that `what` (an option, or the part behind the colon) can have.
  [[noreturn]] void reject(std::string_view what, std::string_view value, std::string_view expected) const;

  /// Throws InputError for an option that no call of option() asked for, with the nearest right name.
  void finish() const;

 private:
  std::string text_;
  std::string name_;
  std::optional<std::string> argument_;
  std::vector<std::pair<std::string, std::string>> options_;
  std::vector<std::string> known_;
};

}  // namespace strait
