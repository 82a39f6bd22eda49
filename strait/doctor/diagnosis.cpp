#include "strait/doctor/diagnosis.h"

#include <algorithm>
#include <array>

#include "strait/base/text.h"

namespace strait {
namespace {

constexpr std::array<const char*, 4> kRouteNames = {"none", "local", "direct", "relayed"};  // as in Route

}  // namespace

const PairReport* Diagnosis::find(const RankPair& ranks) const {
  const auto found = std::ranges::find(pairs, ranks, &PairReport::ranks);
  return found == pairs.end() ? nullptr : &*found;
}

std::string Diagnosis::use_of(const RankPair& ranks) const {
  std::vector<std::string> names;
  for (const auto& boundary : boundaries) {
    if (boundary.ranks() == ranks) names.push_back(boundary.name);
  }
  if (!names.empty()) return (names.size() == 1 ? "boundary " : "boundaries ") + list_of(names);
  const PairReport* const pair = find(ranks);
  return pair != nullptr && pair->speed ? "gradients of replicas" : "";
}

std::string to_string(Route route) { return kRouteNames[static_cast<size_t>(route)]; }

std::optional<Route> parse_route(std::string_view name) {
  const auto found = std::ranges::find(kRouteNames, name);
  if (found == kRouteNames.end()) return std::nullopt;
  return static_cast<Route>(found - kRouteNames.begin());
}

}  // namespace strait
