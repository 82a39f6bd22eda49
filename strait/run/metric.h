#pragma once

#include <limits>
#include <span>
#include <string_view>

namespace strait {

/// A measure of a network's predictions beside the loss.
struct Metric {
  std::string_view name;         ///< its key in metrics.jsonl
  std::string_view short_name;   ///< above a column of a table
  std::string_view unit;         ///< behind the number: "%" or nothing
  std::string_view expected;     ///< what a value is called: "percentage"
  bool higher_is_better = true;  ///< of two values
  bool rises_with_loss = false;  ///< a function of the loss alone: then losses are compared
  double least = 0;              ///< that a value can be

  /// The largest value that is no mistake.
  double most = std::numeric_limits<double>::max();
};

/// The share of right predictions.
inline constexpr Metric kAccuracy{
    .name = "accuracy", .short_name = "%", .unit = "%", .expected = "percentage", .least = 0, .most = 100};

/// exp(loss), the loss being a mean cross-entropy in nats; may be infinite.
inline constexpr Metric kPerplexity{.name = "perplexity",
                                    .short_name = "ppl",
                                    .unit = "",
                                    .expected = "perplexity",
                                    .higher_is_better = false,
                                    .rises_with_loss = true,
                                    .least = 1};

/// The loss itself, of networks that have no metric.
inline constexpr Metric kLoss{
    .name = "loss", .short_name = "loss", .unit = "", .expected = "loss", .higher_is_better = false};

/// All of them but the loss. Where scores have several, the first is what a network is judged by.
std::span<const Metric> all_metrics();

/// The entry of that name; null for any other, such as "loss".
const Metric* find_metric(std::string_view name);

}  // namespace strait
