#include "strait/transport/handshake.h"

#include <nlohmann/json.hpp>

#include "strait/base/host.h"
#include "strait/base/json.h"
#include "strait/wire/frame.h"

namespace strait {
namespace {

using nlohmann::json;

/// How another rank's handshake differs from this one's; empty when it does not.
std::string difference(const json& mine, const json& theirs) {
  for (const auto& [field, name] : {std::pair{"wire_version", "wire version"},
                                    {"code_version", "code version"},
                                    {"size", "number of processes (WORLD_SIZE)"},
                                    {"flags", "flags"}}) {
    if (mine.at(field) != theirs.at(field)) {
      return fmt::format("has {} {}, this one {}", name, theirs.at(field).dump(), mine.at(field).dump());
    }
  }
  const auto& keys = mine.at("config");
  const auto& others = theirs.at("config");
  if (keys.size() != others.size()) {
    return fmt::format("has {} settings, this one {}", others.size(), keys.size());
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] == others.at(i)) continue;
    return fmt::format("has {} = {}, this one {}", keys[i].at(0).get<std::string>(),
                       others[i].at(1).get<std::string>(), keys[i].at(1).get<std::string>());
  }
  return "";
}

}  // namespace

std::string Handshake::text() const {
  return json{{"wire_version", kWireVersion},
              {"code_version", code_version()},
              {"size", processes},
              {"flags", flags},
              {"config", settings}}
      .dump();
}

void check_handshakes(int rank, const std::vector<std::string>& handshakes) {
  const auto handshake = [&](size_t of) {
    return parse_json<WireError>(handshakes[of], fmt::format("the handshake of rank {}", of));
  };
  const json mine = handshake(static_cast<size_t>(rank));
  for (size_t other = 0; other < handshakes.size(); ++other) {
    const json theirs = handshake(other);
    std::string found;
    try {
      found = difference(mine, theirs);
    } catch (const json::exception&) {
      throw WireError("rank {}: rank {} speaks another language", rank, other);
    }
    if (!found.empty()) {
      throw Error("rank {}: rank {} {}; all must be the same", rank, other, found);
    }
  }
}

}  // namespace strait
