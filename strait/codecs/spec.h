#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strait {

/// The spec of the codec that sends a tensor as it is.
inline constexpr std::string_view kUncompressed = "none";

/// A codec or a feedback scheme as a person writes it: `name[:argument][,option=value]...`, for example
/// `quant:4,scope=sample`. Factories take what they understand and call finish().
class OperatorSpec {
 public:
  /// Splits the text. `kind` is what it names, for messages: codec or feedback. Throws InputError when it is
  /// not of that form.
  static OperatorSpec parse(std::string_view kind, std::string_view text);

  /// All of it, as it was written.
  const std::string& text() const { return text_; }

  /// The part before the colon, or before the first comma.
  const std::string& name() const { return name_; }

  /// The part behind the colon; throws InputError naming `what` when there is none.
  const std::string& argument(std::string_view what);

  /// The part behind the colon; nothing where there is no colon.
  const std::optional<std::string>& optional_argument();

  /// The option's value; where the spec does not set it, that of set_default(), or else `fallback`. Marks the
  /// option as understood.
  std::string option(const std::string& key, std::string fallback);

  /// A value for an option, understood or not, that the spec does not set.
  void set_default(const std::string& key, std::string value);

  /// Name, argument and the options that it or set_default() sets, but for these.
  std::string text_without(const std::vector<std::string_view>& options) const;

  /// Reads a number of the spec: its argument, an option or a part of one. Throws InputError naming `what`
  /// where it is no integer from `low` to `high`.
  int64_t integer(std::string_view value, std::string_view what, int64_t low, int64_t high) const;

  /// Throws InputError: `value` is not one that `what` (an option, or the part behind the colon) can have.
  [[noreturn]] void reject(std::string_view what, std::string_view value, std::string_view expected) const;

  /// Throws InputError for a part behind a colon that no call of argument() asked for, and for an option of the
  /// spec that none of option() did, with the nearest right name.
  void finish() const;

 private:
  using Options = std::vector<std::pair<std::string, std::string>>;

  std::string kind_;
  std::string text_;
  std::string name_;
  std::optional<std::string> argument_;
  bool takes_argument_ = false;
  Options options_;
  Options defaults_;
  std::vector<std::string> known_;
};

}  // namespace strait
