#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace strait {

/// A share 0 < p <= 1 written as a decimal, kept exactly: 0.1 is 1 / 10, not the double next to it.
class Fraction {
 public:
  /// Digits with at most nine behind the point: "0.1", "1", "0.000000001". Nothing for any other text and
  /// for a number outside (0, 1].
  static std::optional<Fraction> parse(std::string_view text);

  /// ceil(p * n) in integer arithmetic; 1..n for 1 <= n < 2^32.
  size_t of(size_t n) const { return (numerator_ * n + denominator_ - 1) / denominator_; }

  /// floor(p * n) in integer arithmetic, for n < 2^32.
  size_t floor_of(size_t n) const { return numerator_ * n / denominator_; }

  /// The nearest float64.
  double value() const { return static_cast<double>(numerator_) / static_cast<double>(denominator_); }

  /// Equal as numbers: 0.1 and 0.10 are.
  bool operator==(const Fraction& other) const {
    return numerator_ * other.denominator_ == other.numerator_ * denominator_;
  }

 private:
  Fraction(uint64_t numerator, uint64_t denominator) : numerator_(numerator), denominator_(denominator) {}

  uint64_t numerator_;
  uint64_t denominator_;
};

/// A decimal of digits and at most one point, without sign and exponent, as the nearest float64. Nothing for
/// any other text, nor for one past float64.
std::optional<double> parse_decimal(std::string_view text);

}  // namespace strait
