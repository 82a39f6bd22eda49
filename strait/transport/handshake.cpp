#include "strait/transport/handshake.h"

#include <algorithm>
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
  for (size_t i = 0; i < std::min(keys.size(), others.size()); ++i) {
    if (keys[i] == others[i]) continue;
    const auto name = keys[i].at(0).get<std::string>();
    const auto their_name = others[i].at(0).get<std::string>();
    if (name != their_name) return fmt::format("has {} where this one has {}", their_name, name);
    return fmt::format("has {} = {}, this one {}", name, others[i].at(1).get<std::string>(),
                       keys[i].at(1).get<std::string>());
  }
  if (keys.size() == others.size()) return "";
  return fmt::format("has {} settings, this one {}", others.size(), keys.size());
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
