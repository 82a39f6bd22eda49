#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "strait/report/run.h"

namespace strait::report {

/// The rates of the networks over which a page shows what a training would take, rising.
inline constexpr std::array<std::string_view, 11> kNetworkRates = {"10Mbps",  "20Mbps",  "50Mbps",   "100Mbps",
                                                                   "200Mbps", "500Mbps", "1Gbps",    "2Gbps",
                                                                   "5Gbps",   "10Gbps",  "unlimited"};

/// Their latencies, rising. Every rate goes with every latency.
inline constexpr std::array<std::string_view, 4> kNetworkLatencies = {"0s", "10ms", "50ms", "100ms"};

/// How many networks there are: those of the first rate, by latency, then those of the second, and so on.
inline constexpr size_t kNetworks = kNetworkRates.size() * kNetworkLatencies.size();

/// An evaluation, and how long training until then would have taken.
struct TimedScore {
  double steps = 0;             ///< of the optimizer, of the whole training
  const Scores* off = nullptr;  ///< with compression off; never null
  const Scores* on = nullptr;   ///< with compression on; never null
  std::vector<double> seconds;  ///< of these steps over each of the networks, without evaluation
};

/// The evaluations of a run in order, those within epochs included. None where the run does not begin with
/// epoch 0, or where an epoch has no step_seconds.
std::vector<TimedScore> timed_scores(const Run& run);

}  // namespace strait::report
