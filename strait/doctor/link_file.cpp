#include "strait/doctor/link_file.h"

#include <nlohmann/json.hpp>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/base/json_reader.h"

namespace strait {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kMaker = "strait doctor";
constexpr double kBits = 8;
constexpr uint64_t kMostRanks = 1U << 20;

Json facts_json(const RankFacts& facts) {
  return {{"rank", facts.rank},
          {"host", facts.host},
          {"address", facts.address},
          {"processor", facts.processor},
          {"cores", facts.cores},
          {"free_memory_bytes", facts.free_memory},
          {"folder", facts.folder},
          {"free_disk_bytes", facts.free_disk},
          {"code_version", facts.code_version},
          {"wire_version", facts.wire_version},
          {"library_version", facts.library_version},
          {"send_buffer_bytes", facts.send_buffer},
          {"receive_buffer_bytes", facts.receive_buffer},
          {"weight_bytes", facts.weight_bytes},
          {"clock_ahead_seconds", facts.clock_ahead},
          {"problem", facts.problem.empty() ? Json() : Json(facts.problem)}};
}

Json pair_json(const PairReport& pair) {
  Json json = {{"ranks", {pair.ranks.low, pair.ranks.high}},
               {"route", to_string(pair.route)},
               {"connections", pair.connections},
               {"outages", pair.outages}};
  if (pair.speed) {
    json["bits_per_second"] = {kBits * pair.speed->up, kBits * pair.speed->down};
    json["latency_seconds"] = pair.speed->latency_seconds;
  }
  return json;
}

Json boundary_json(const Diagnosis& diagnosis, const BoundaryPlace& place) {
  Json json = {{"name", place.name},
               {"replica", place.replica},
               {"rank_before", place.before},
               {"rank_behind", place.behind}};
  const PairReport* const pair = diagnosis.find(place.ranks());
  json["route"] = to_string(pair == nullptr ? Route::local : pair->route);
  Json activations;
  Json gradients;
  Json latency;
  if (pair != nullptr && pair->speed) {
    const bool goes_up = place.before < place.behind;
    activations = kBits * (goes_up ? pair->speed->up : pair->speed->down);
    gradients = kBits * (goes_up ? pair->speed->down : pair->speed->up);
    latency = pair->speed->latency_seconds;
  }
  json["activation_bits_per_second"] = activations;
  json["gradient_bits_per_second"] = gradients;
  json["latency_seconds"] = latency;
  return json;
}

Route route_in(const JsonReader& from) {
  if (const auto route = parse_route(from.text("route"))) return *route;
  from.at("route").fail("none, local, direct or relayed");
}

double rate_in(const JsonReader& from, const char* key) {
  const double bits = from.number(key);
  if (!(bits > 0)) from.at(key).fail("bits per second above 0");
  return bits / kBits;
}

MeasuredBoundary boundary_in(const JsonReader& from) {
  MeasuredBoundary boundary;
  boundary.place = {.name = from.text("name"),
                    .replica = static_cast<int>(from.count("replica", kMostRanks)),
                    .before = static_cast<int>(from.count("rank_before", kMostRanks)),
                    .behind = static_cast<int>(from.count("rank_behind", kMostRanks))};
  boundary.route = route_in(from);
  if (boundary.place.before == boundary.place.behind) return boundary;
  const double latency = from.number("latency_seconds");
  if (!(latency >= 0)) from.at("latency_seconds").fail("seconds from 0 on");
  boundary.link = {.activations = {rate_in(from, "activation_bits_per_second"), latency},
                   .gradients = {rate_in(from, "gradient_bits_per_second"), latency}};
  return boundary;
}

}  // namespace

std::string diagnosis_json(const Diagnosis& diagnosis, std::span<const Finding> findings) {
  Json json = {{"made_by", kMaker},           {"schema", kLinkFileSchema}, {"name", diagnosis.name},
               {"boundaries", Json::array()}, {"pairs", Json::array()},    {"ranks", Json::array()},
               {"findings", Json::array()}};
  for (const auto& place : diagnosis.boundaries) json["boundaries"].push_back(boundary_json(diagnosis, place));
  for (const auto& pair : diagnosis.pairs) json["pairs"].push_back(pair_json(pair));
  for (const auto& facts : diagnosis.ranks) json["ranks"].push_back(facts_json(facts));
  for (const auto& finding : findings) {
    json["findings"].push_back({{"stops_the_run", finding.stops_the_run}, {"text", finding.text}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

LinkFile read_link_file(const std::filesystem::path& path) {
  const JsonText text(read_whole(path, kJsonBytesMost), path.string());
  const JsonReader root = text.root();
  if (root.optional_text("made_by") != kMaker) root.fail("a file that strait doctor --ranks --out has made");
  if (root.count("schema") != kLinkFileSchema) {
    root.at("schema").fail(fmt::format("{}, as this version of strait doctor makes it", kLinkFileSchema));
  }
  LinkFile file;
  file.ranks = static_cast<int>(root.at("ranks").size());
  const JsonReader boundaries = root.at("boundaries");
  for (size_t i = 0; i < boundaries.size(); ++i) {
    file.boundaries.push_back(boundary_in(boundaries.at(i)));
  }
  return file;
}

std::vector<MeasuredBoundary> boundaries_for(const LinkFile& file, const std::filesystem::path& path,
                                             const Config& config, int ranks) {
  if (file.ranks != ranks) {
    throw InputError("{}: ranks: expected {}, as the configuration has, found {}", path.string(), ranks,
                     file.ranks);
  }
  const auto& cuts = config.model.cuts;
  if (file.boundaries.size() != cuts.size()) {
    throw InputError("{}: boundaries: expected {}, as model.cuts makes, found {}", path.string(), cuts.size(),
                     file.boundaries.size());
  }
  const auto places = boundary_places(config, ranks);
  for (size_t i = 0; i < places.size(); ++i) {
    const BoundaryPlace& place = file.boundaries[i].place;
    if (place.name != places[i].name) {
      throw InputError("{}: boundaries[{}].name: expected \"{}\", as model.cuts has it, found \"{}\"",
                       path.string(), i, places[i].name, place.name);
    }
    if (place.before != places[i].before || place.behind != places[i].behind) {
      throw InputError(
          "{}: boundaries[{}]: expected the ranks {} and {}, as the configuration places the stages, "
          "found {} and {}",
          path.string(), i, places[i].before, places[i].behind, place.before, place.behind);
    }
  }
  return file.boundaries;
}

}  // namespace strait
