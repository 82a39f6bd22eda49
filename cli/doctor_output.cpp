#include "cli/doctor_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "strait/base/text.h"
#include "strait/base/units.h"

namespace strait::cli {
namespace {

constexpr const char* kLinkRow = "  {:<9} {:<24} {:<14} {:>11} {:>11} {:>9}\n";
constexpr const char* kRankRow = "  {:>4}  {:<{}}  {:>5}  {:>11}  {:>9}  {:>8}  {}\n";

std::string route_text(Route route) {
  switch (route) {
    case Route::none:
      return "not known";
    case Route::local:
      return "on one machine";
    case Route::direct:
      return "directly";
    case Route::relayed:
      return "through rank 0";
  }
  return "";
}

/// `0 - 2`.
std::string pair_text(const RankPair& ranks) { return fmt::format("{} - {}", ranks.low, ranks.high); }

/// Of the pairs that exchange little, how many speak in each way; those that go through rank 0 by name.
std::string other_pairs(const Diagnosis& diagnosis) {
  std::vector<std::string> parts;
  for (const Route route : {Route::none, Route::local, Route::direct, Route::relayed}) {
    std::vector<std::string> names;
    for (const auto& pair : diagnosis.pairs) {
      if (!pair.speed && pair.route == route) names.push_back(pair_text(pair.ranks));
    }
    const bool named = route == Route::none || route == Route::relayed;
    if (names.empty()) continue;
    parts.push_back(
        fmt::format("{} {}{}", names.size(), route_text(route), named ? " (" + list_of(names) + ")" : ""));
  }
  return parts.empty() ? "" : fmt::format("other pairs: {}\n", list_of(parts));
}

std::string clock_text(double ahead) {
  if (std::abs(ahead) < 0.0005) return "0 ms";
  return (ahead < 0 ? "-" : "+") + duration_text(std::abs(ahead));
}

}  // namespace

std::string links_heading() {
  return fmt::format(fmt::runtime(kLinkRow), "ranks", "for", "how", "there", "back", "latency");
}

std::string link_row(const Diagnosis& diagnosis, const PairReport& pair) {
  return fmt::format(fmt::runtime(kLinkRow), pair_text(pair.ranks), diagnosis.use_of(pair.ranks),
                     pair.connections > 1 ? count_text(static_cast<int64_t>(pair.connections), "connection")
                                          : route_text(pair.route),
                     bandwidth_text(pair.speed->up), bandwidth_text(pair.speed->down),
                     duration_text(pair.speed->latency_seconds));
}

std::string ranks_text(const Diagnosis& diagnosis) {
  size_t width = std::string_view("machine").size();
  const auto machine = [](const RankFacts& facts) {
    return fmt::format("{}, {}", facts.host, facts.processor);
  };
  for (const auto& facts : diagnosis.ranks) width = std::max(width, machine(facts).size());
  std::string text = other_pairs(diagnosis);
  text += fmt::format(fmt::runtime(kRankRow), "rank", "machine", width, "cores", "free memory", "free disk",
                      "clock", "version");
  for (const auto& facts : diagnosis.ranks) {
    text += fmt::format(fmt::runtime(kRankRow), facts.rank, machine(facts), width, facts.cores,
                        size_text(facts.free_memory), size_text(facts.free_disk), clock_text(facts.clock_ahead),
                        fmt::format("strait {}, wire version {}, LibTorch {}", facts.code_version,
                                    facts.wire_version, facts.library_version));
  }
  return text;
}

std::string findings_text(std::span<const Finding> findings) {
  if (findings.empty()) return "all is well: nothing was found that a run would suffer from\n";
  std::string text;
  for (const auto& finding : findings) {
    text += fmt::format("{}: {}\n", finding.stops_the_run ? "wrong" : "note", finding.text);
  }
  const bool stops = std::ranges::any_of(findings, &Finding::stops_the_run);
  return text + (stops ? "" : "nothing of this keeps the run from working\n");
}

}  // namespace strait::cli
