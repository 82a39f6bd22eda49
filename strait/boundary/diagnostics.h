#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "strait/links/slot_state.h"

namespace strait {

/// What the measured messages of one direction of one boundary looked like, taken together.
struct Diagnostics {
  /// The shares of elements whose magnitudes `quantiles` bounds.
  static constexpr std::array<double, 4> kShares = {0.5, 0.9, 0.99, 1.0};

  uint64_t messages = 0;              ///< that were measured
  double zeros = 0;                   ///< share of elements that are 0
  std::array<double, 4> quantiles{};  ///< of the magnitude, at kShares; within 3%, the last exact
  double relative_error = 0;          ///< |x - what the receiver sees| / |x|, 2-norms

  /// Between consecutive messages of a slot: mean over the rows of the cosine of the angle between a row and
  /// the row of the message before that stood at the same place of its batch. Nothing where there was none.
  std::optional<double> cosine;

  /// |what the state holds back| / |x|, 2-norms; nothing for a link that holds nothing back.
  std::optional<double> residual_norm;
};

/// Measures every n-th step's messages of one direction of one boundary at the sender.
class DiagnosticsRecorder {
 public:
  /// `every` 0 measures nothing.
  explicit DiagnosticsRecorder(int every) : every_(every < 0 ? 0 : static_cast<uint64_t>(every)) {}

  /// Whether the messages of this step are measured.
  bool measures(const MessageContext& context) const { return every_ != 0 && context.step % every_ == 0; }

  /// Takes every message of training; the report has what was received when measures() says so.
  void add(const at::Tensor& x, const MessageContext& context, const MessageReport& report);

  /// What was measured since the beginning or the last reset().
  std::optional<Diagnostics> measured() const;

  /// Forgets what was measured.
  void reset() { sums_ = Sums(); }

 private:
  static constexpr int kBinShift = 19;  ///< drops all but the exponent and four bits of the fraction
  struct Sums {
    uint64_t messages = 0;
    uint64_t elements = 0;
    uint64_t zeros = 0;
    double message = 0;  ///< squared norms
    double error = 0;
    double residual = 0;
    bool has_residual = false;
    double cosines = 0;
    int64_t cosine_rows = 0;
    float largest = 0;
    std::vector<uint64_t> bins = std::vector<uint64_t>(size_t{1} << (31 - kBinShift));
  };
  void count_magnitudes(const at::Tensor& x);
  void compare_with_previous(const at::Tensor& x, const MessageContext& context);
  double quantile(double share) const;

  uint64_t every_;
  SlotState previous_;
  Sums sums_;
};

}  // namespace strait
