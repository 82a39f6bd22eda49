#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace strait {

/// How the activations of test samples cross the boundaries (paper, section 3: compression off and on;
/// docs/operators.md, "Evaluation"). The last three differ only where activations have
/// feedback; the configuration names the one of them that tables call "on".
enum class EvaluationMode {
  off,     ///< as they are
  plain,   ///< through the bare operator
  frozen,  ///< through the link, with its state as training left it
  live,    ///< through the link, with its state moving from batch to batch; it is put back after the pass
};

/// The names of the modes, in their order.
inline constexpr std::array<std::string_view, 4> kEvaluationModeNames = {"off", "plain", "frozen", "live"};

/// Those of the modes that compress.
inline std::vector<std::string> compressed_mode_names() {
  return {kEvaluationModeNames.begin() + 1, kEvaluationModeNames.end()};
}

/// The mode's name.
constexpr std::string_view to_string(EvaluationMode mode) {
  return kEvaluationModeNames.at(static_cast<size_t>(mode));
}

/// The mode of a name; `off` for one that no mode has.
constexpr EvaluationMode evaluation_mode(std::string_view name) {
  for (size_t i = 0; i < kEvaluationModeNames.size(); ++i) {
    if (kEvaluationModeNames.at(i) == name) return static_cast<EvaluationMode>(i);
  }
  return EvaluationMode::off;
}

}  // namespace strait
