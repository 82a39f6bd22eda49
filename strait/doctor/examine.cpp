#include "strait/doctor/examine.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "strait/base/error.h"
#include "strait/base/host.h"
#include "strait/base/json.h"
#include "strait/doctor/rank_facts.h"
#include "strait/experiment/handshake.h"
#include "strait/pipeline/schedules.h"

namespace strait {
namespace {

using nlohmann::json;

/// The version of what the ranks say to each other here.
constexpr int kLanguage = 1;

void check_all_are_here(int rank, const std::vector<std::string>& handshakes) {
  for (size_t other = 0; other < handshakes.size(); ++other) {
    const json said = parse_json<WireError>(handshakes[other], fmt::format("the handshake of rank {}", other));
    if (!said.is_object() || !said.contains("doctor")) {
      throw Error("rank {}: rank {} does not run strait doctor --ranks; start the same for every rank", rank,
                  other);
    }
    if (said["doctor"] == kLanguage) continue;
    throw Error(
        "rank {}: rank {} has strait {}, whose doctor speaks another language than that of {}; install one "
        "version everywhere",
        rank, other, said.value("code_version", "of an unknown version"), code_version());
  }
}

/// What another rank has said in a gather().
json parsed(const std::string& text, size_t rank) {
  return parse_json<WireError>(text, fmt::format("what rank {} has found", rank));
}

class Examination {
 public:
  Examination(Group& group, double seconds) : group_(group), seconds_(seconds) {}

  /// Everybody's facts, and what rank 0 wants measured.
  void introduce(const Config& config, const RankFacts& mine) {
    found_.name = config.name;
    found_.boundaries = boundary_places(config, group_.size());
    json pairs = json::array();
    for (const auto& pair : busy_pairs(config, group_.size())) pairs.push_back({pair.low, pair.high});
    const auto all = group_.gather(json{{"facts", facts_text(mine)}, {"pairs", pairs}}.dump());
    for (size_t rank = 0; rank < all.size(); ++rank) {
      const json said = parsed(all[rank], rank);
      found_.ranks.push_back(parse_facts(said.at("facts").get<std::string>(), static_cast<int>(rank)));
      if (rank > 0) continue;
      for (const auto& pair : said.at("pairs")) busy_.push_back({pair.at(0).get<int>(), pair.at(1).get<int>()});
    }
  }

  /// Each speaks with each, so that the routes show.
  void reach_all() {
    const std::string what = "a word from each to each";
    const at::Tensor word = at::zeros({1}, at::kByte);
    for (int peer = 0; peer < group_.size(); ++peer) {
      if (peer != group_.rank()) group_.send(word, peer, what);
    }
    at::Tensor heard = at::zeros({1}, at::kByte);
    for (int peer = 0; peer < group_.size(); ++peer) {
      if (peer != group_.rank()) group_.receive(heard, peer, what);
    }
    for (int high = 1; high < group_.size(); ++high) {
      for (int low = 0; low < high; ++low) found_.pairs.push_back({.ranks = {low, high}});
    }
    std::ranges::sort(found_.pairs, {},
                      [](const PairReport& pair) { return std::pair(pair.ranks.low, pair.ranks.high); });
    note_routes();
  }

  /// How pairs speak, as the higher rank says, and where ranks listen, as the others say.
  void note_routes() {
    json mine = json::array();
    for (const auto& link : group_.links()) {
      mine.push_back({link.peer, to_string(link.route), link.outages.size(), link.address, link.connections});
    }
    const auto all = group_.gather(mine.dump());
    for (size_t rank = 0; rank < all.size(); ++rank) {
      for (const json& link : parsed(all[rank], rank)) {
        const auto peer = link.at(0).get<size_t>();
        found_.ranks.at(peer).address = link.at(3).get<std::string>();
        PairReport* const pair = find({static_cast<int>(peer), static_cast<int>(rank)});
        if (pair == nullptr) continue;
        pair->route = parse_route(link.at(1).get<std::string>()).value_or(Route::none);
        pair->outages = link.at(2).get<uint64_t>();
        pair->connections = link.size() > 4 ? link.at(4).get<uint64_t>() : 1;  // other versions do not say
      }
    }
  }

  void compare_clocks() {
    json ahead = json::array({0});
    if (group_.rank() > 0) {
      answer_clock(group_, 0);
    } else {
      for (int other = 1; other < group_.size(); ++other) ahead.push_back(measure_clock(group_, other));
    }
    const auto all = group_.gather(ahead.dump());
    const json known = parsed(all.front(), 0);
    for (auto& facts : found_.ranks)
      facts.clock_ahead = known.at(static_cast<size_t>(facts.rank)).get<double>();
  }

  /// One pair after the other; what it has found, its lower rank tells all.
  void measure_links(const OnPair& on_pair) {
    for (const RankPair& ranks : busy_) {
      PairReport* const pair = find(ranks);
      if (pair == nullptr) throw WireError("rank 0 wants a link of ranks {} and {}", ranks.low, ranks.high);
      json result;
      if (group_.rank() == ranks.low || group_.rank() == ranks.high) {
        const int other = group_.rank() == ranks.low ? ranks.high : ranks.low;
        const LinkSpeed speed = measure_link(group_, other, seconds_);
        result = {speed.up, speed.down, speed.latency_seconds};
      }
      const auto low = static_cast<size_t>(ranks.low);
      const json told = parsed(group_.gather(result.dump())[low], low);
      pair->speed = {told.at(0).get<double>(), told.at(1).get<double>(), told.at(2).get<double>()};
      on_pair(found_, *pair);
    }
  }

  Diagnosis take() { return std::move(found_); }

 private:
  PairReport* find(const RankPair& ranks) {
    const auto found = std::ranges::find(found_.pairs, ranks, &PairReport::ranks);
    return found == found_.pairs.end() ? nullptr : &*found;
  }

  Group& group_;
  double seconds_;
  Diagnosis found_;
  std::vector<RankPair> busy_;
};

}  // namespace

std::shared_ptr<Group> join_examination(const Config& config, const Membership& membership, double seconds,
                                        const WaitingFor& waiting) {
  check_process_count(static_cast<int>(config.model.cuts.size()) + 1, config.pipeline, membership.size);
  // All wait while a pair is measured, both ways, a little longer than it should take.
  const auto measured =
      std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(4 * seconds));
  return join_group(
      {Carrier::tcp, config.pipeline.connections}, membership, timeout_of(config) + measured,
      json{{"doctor", kLanguage}, {"code_version", code_version()}}.dump(),
      [&](const auto& handshakes) { check_all_are_here(membership.rank, handshakes); }, waiting);
}

Diagnosis examine(Group& group, const Config& config, const RankFacts& mine, double seconds,
                  const OnPair& on_pair) {
  Examination examination(group, seconds);
  try {
    examination.introduce(config, mine);
    examination.reach_all();
    examination.compare_clocks();
    examination.measure_links(on_pair);
    examination.note_routes();
  } catch (const std::exception& error) {
    group.fail(failure_of(error, group.rank()));
    throw;
  }
  return examination.take();
}

}  // namespace strait
