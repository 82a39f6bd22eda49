#include "strait/doctor/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "strait/base/text.h"
#include "strait/base/units.h"
#include "strait/transport/join_group.h"

namespace strait {
namespace {

constexpr double kClockMost = 3;       // seconds between two clocks that nobody minds
constexpr double kFarSlower = 4;       // times slower than the middle of the links
constexpr uint64_t kLittle = 1 << 30;  // bytes of disk or memory that hold hardly anything
constexpr double kFullBuffer =
    0.65;                         // of a buffer to send: the rest is for what a packet takes beside its bytes
constexpr double kWindow = 0.75;  // of a buffer to receive, which has more of that

/// `rank 2`, `ranks 2, 3`.
std::string ranks_text(const std::vector<int>& ranks) {
  std::vector<std::string> names;
  names.reserve(ranks.size());
  for (const int rank : ranks) names.push_back(std::to_string(rank));
  return (ranks.size() == 1 ? "rank " : "ranks ") + list_of(names);
}

/// The ranks by what `key` says of them, in the order of texts.
template <class Key>
std::map<std::string, std::vector<int>> ranks_by(const Diagnosis& diagnosis, const Key& key) {
  std::map<std::string, std::vector<int>> groups;
  for (const auto& facts : diagnosis.ranks) groups[key(facts)].push_back(facts.rank);
  return groups;
}

/// Those that run the same are said in one line.
void find_versions(const Diagnosis& diagnosis, std::vector<Finding>& findings) {
  const auto version = [](const RankFacts& facts) {
    return fmt::format("strait {} (wire version {})", facts.code_version, facts.wire_version);
  };
  const std::string first = version(diagnosis.ranks.front());
  for (const auto& [other, ranks] : ranks_by(diagnosis, version)) {
    if (other == first) continue;
    findings.push_back(
        {true, fmt::format("{} {} {}, rank 0 {}; strait train refuses ranks that differ: install "
                           "one version everywhere",
                           ranks_text(ranks), ranks.size() == 1 ? "has" : "have", other, first)});
  }
  const auto library = [](const RankFacts& facts) { return facts.library_version; };
  for (const auto& [other, ranks] : ranks_by(diagnosis, library)) {
    if (other == library(diagnosis.ranks.front())) continue;
    findings.push_back(
        {false, fmt::format("{} {} LibTorch {}, rank 0 {}: they work together, but another split over "
                            "machines may give other bits",
                            ranks_text(ranks), ranks.size() == 1 ? "has" : "have", other,
                            library(diagnosis.ranks.front()))});
  }
}

/// The first key in which a rank of the same version differs from rank 0.
void find_settings(const Diagnosis& diagnosis, std::vector<Finding>& findings) {
  const RankFacts& first = diagnosis.ranks.front();
  for (const auto& facts : diagnosis.ranks) {
    if (facts.code_version != first.code_version) continue;
    const auto [theirs, own] = std::ranges::mismatch(facts.settings, first.settings);
    if (theirs == facts.settings.end() || own == first.settings.end()) continue;
    findings.push_back(
        {true, fmt::format("rank {} has {} = {}, rank 0 {} = {}; strait train refuses ranks that "
                           "differ: give all the same configuration",
                           facts.rank, theirs->first, theirs->second, own->first, own->second)});
  }
}

void find_problems(const Diagnosis& diagnosis, std::vector<Finding>& findings) {
  const auto problem = [](const RankFacts& facts) { return facts.problem; };
  for (const auto& [text, ranks] : ranks_by(diagnosis, problem)) {
    if (!text.empty()) findings.push_back({true, fmt::format("{}: {}", ranks_text(ranks), text)});
  }
}

/// Ranks of one machine share what it has.
struct Machine {
  std::vector<int> ranks = {};
  uint64_t free_memory = 0;
  uint64_t free_disk = 0;
  std::string folder = {};
  uint64_t training_bytes = 0;
  uint64_t checkpoint_bytes = 0;
};

std::map<std::string, Machine> machines_of(const Diagnosis& diagnosis) {
  std::map<std::string, Machine> machines;
  for (const auto& facts : diagnosis.ranks) {
    Machine& machine = machines[facts.host];
    machine.ranks.push_back(facts.rank);
    // Those that have begun to look later see what the others have taken.
    machine.free_memory = std::max(machine.free_memory, facts.free_memory);
    machine.free_disk = std::max(machine.free_disk, facts.free_disk);
    machine.folder = facts.folder;
    machine.training_bytes += facts.training_bytes();
    machine.checkpoint_bytes += facts.checkpoint_bytes;
  }
  return machines;
}

void find_shortage(const std::string& where, const char* what, const char* purpose, uint64_t free,
                   uint64_t needed, std::vector<Finding>& findings) {
  if (needed > free) {
    findings.push_back({true, fmt::format("{} has {} of {}, and {} at least {}", where, size_text(free), what,
                                          purpose, size_text(needed))});
  } else if (free < kLittle) {
    findings.push_back({false, fmt::format("{} has only {} of {}", where, size_text(free), what)});
  }
}

void find_shortages(const Diagnosis& diagnosis, std::vector<Finding>& findings) {
  for (const auto& [host, machine] : machines_of(diagnosis)) {
    const std::string where = fmt::format("{} ({})", host, ranks_text(machine.ranks));
    find_shortage(where, "free disk", fmt::format("checkpoints in {} take", machine.folder).c_str(),
                  machine.free_disk, machine.checkpoint_bytes, findings);
    find_shortage(where, "free memory", "weights and gradients take", machine.free_memory,
                  machine.training_bytes, findings);
  }
}

/// `1`, or `1 (10.0.0.2:40123)`.
std::string rank_with_address(const Diagnosis& diagnosis, int rank) {
  const std::string& address = diagnosis.ranks[static_cast<size_t>(rank)].address;
  return fmt::format("{}{}", rank, address.empty() ? "" : " (" + address + ")");
}

void find_routes(const Diagnosis& diagnosis, std::vector<Finding>& findings) {
  for (const auto& pair : diagnosis.pairs) {
    const auto& [low, high] = pair.ranks;
    if (pair.route == Route::relayed) {
      const std::string use = diagnosis.use_of(pair.ranks);
      findings.push_back(
          {false, fmt::format("ranks {} and {} cannot reach each other; their messages{} go through "
                              "rank 0: let the port of either through to the other's machine",
                              rank_with_address(diagnosis, low), rank_with_address(diagnosis, high),
                              use.empty() ? "" : ", of " + use + ",")});
    }
    if (pair.outages > 0) {
      findings.push_back(
          {false, fmt::format("the connection of ranks {} and {} was lost {} while it was examined: "
                              "the link drops now and then",
                              low, high, pair.outages == 1 ? "once" : fmt::format("{} times", pair.outages))});
    }
  }
}

/// One way of a link.
struct Way {
  const PairReport* pair;
  int from;
  int to;
  double rate;
};

/// Those between machines: on one machine all is fast.
std::vector<Way> ways_of(const Diagnosis& diagnosis) {
  std::vector<Way> ways;
  for (const auto& pair : diagnosis.pairs) {
    if (!pair.speed || pair.route == Route::local) continue;
    ways.push_back({&pair, pair.ranks.low, pair.ranks.high, pair.speed->up});
    ways.push_back({&pair, pair.ranks.high, pair.ranks.low, pair.speed->down});
  }
  return ways;
}

void find_slow_links(const Diagnosis& diagnosis, std::vector<Finding>& findings) {
  const auto ways = ways_of(diagnosis);
  if (ways.empty()) return;
  std::vector<double> rates;
  rates.reserve(ways.size());
  for (const auto& way : ways) rates.push_back(way.rate);
  std::ranges::sort(rates);
  const double middle = rates[rates.size() / 2];
  for (const auto& way : ways) {
    if (way.rate * kFarSlower > middle) continue;
    findings.push_back(
        {false,
         fmt::format(
             "rank {} sends to rank {} ({}) at {}, far slower than the others, of which the middle one has "
             "{}: a step waits for the slowest link; compress more there (compression.boundaries), or cut "
             "the network where less crosses (model.cuts)",
             way.from, way.to, diagnosis.use_of(way.pair->ranks), bandwidth_text(way.rate),
             bandwidth_text(middle))});
  }
}

/// Links on which as much is under way as the systems let a connection have.
void find_full_buffers(const Diagnosis& diagnosis, std::vector<Finding>& findings) {
  for (const auto& way : ways_of(diagnosis)) {
    const uint64_t sends = diagnosis.ranks[static_cast<size_t>(way.from)].send_buffer;
    const uint64_t receives = diagnosis.ranks[static_cast<size_t>(way.to)].receive_buffer;
    const uint64_t connections = way.pair->connections;
    const double round_trip = 2 * way.pair->speed->latency_seconds;
    const double under_way = way.rate * round_trip;
    const double most = std::min(static_cast<double>(sends), kWindow * static_cast<double>(receives)) *
                        static_cast<double>(connections);
    const bool has_more = way.pair->route == Route::direct && connections < kMostConnections;
    if (most == 0 || under_way < kFullBuffer * most || !has_more) continue;
    findings.push_back(
        {false,
         fmt::format(
             "rank {} sends to rank {} ({}) at {} with {} there and back, so that {} are under way: about as "
             "much as the systems let {} have (the last number of net.ipv4.tcp_wmem there is {}, of tcp_rmem "
             "here {}); set pipeline.connections = {}, or raise these numbers",
             way.from, way.to, diagnosis.use_of(way.pair->ranks), bandwidth_text(way.rate),
             duration_text(round_trip), size_text(static_cast<uint64_t>(under_way)),
             count_text(static_cast<int64_t>(connections), "connection"), sends, receives,
             std::min<uint64_t>(4 * connections, kMostConnections))});
  }
}

void find_clocks(const Diagnosis& diagnosis, std::vector<Finding>& findings) {
  for (const auto& facts : diagnosis.ranks) {
    if (std::abs(facts.clock_ahead) <= kClockMost) continue;
    findings.push_back(
        {false, fmt::format("the clock of {} (rank {}) is {:.1f} s {} that of rank 0: times in logs do not fit "
                            "together; let both machines ask a time server",
                            facts.host, facts.rank, std::abs(facts.clock_ahead),
                            facts.clock_ahead > 0 ? "ahead of" : "behind")});
  }
}

}  // namespace

std::vector<Finding> findings_of(const Diagnosis& diagnosis) {
  std::vector<Finding> findings;
  for (const auto find : {find_versions, find_settings, find_problems, find_routes, find_shortages,
                          find_slow_links, find_full_buffers, find_clocks}) {
    find(diagnosis, findings);
  }
  std::stable_partition(findings.begin(), findings.end(),
                        [](const Finding& finding) { return finding.stops_the_run; });
  return findings;
}

}  // namespace strait
