#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "strait/boundary/traffic.h"
#include "strait/links/slot_state.h"

namespace strait {

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
    double common_error = 0;  ///< of messages in which each element has the mean error
    double product = 0;       ///< of what was sent and what was received
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
  RowState previous_;
  Sums sums_;
};

}  // namespace strait
