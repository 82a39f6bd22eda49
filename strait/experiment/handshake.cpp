#include "strait/experiment/handshake.h"

#include <nlohmann/json.hpp>

#include "strait/base/host.h"
#include "strait/base/json.h"
#include "strait/base/units.h"
#include "strait/pipeline/schedules.h"
#include "strait/train/runtime.h"
#include "strait/wire/frame.h"

namespace strait {
namespace {

using nlohmann::json;

/// Keys that may differ from machine to machine.
bool is_local(const std::string& key) {
  return key == "data.root" || key == "compression.store.place" || key == "compression.store.folder" ||
         key == "train.device";
}

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
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::string key = keys[i].at(0);
    if (is_local(key) || keys[i] == others.at(i)) continue;
    return fmt::format("has {} = {}, this one {}", key, others[i].at(1).get<std::string>(),
                       keys[i].at(1).get<std::string>());
  }
  return "";
}

}  // namespace

std::string handshake_of(const Config& config, int processes, const std::string& flags) {
  return json{{"wire_version", kWireVersion},
              {"code_version", code_version()},
              {"size", processes},
              {"flags", flags},
              {"config", key_values(config)}}
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
    if (!found.empty()) throw Error("rank {}: rank {} {}; all must be the same", rank, other, found);
  }
}

std::shared_ptr<Group> join_training(const Config& config, const Membership& membership,
                                     const std::string& flags, const WaitingFor& waiting) {
  check_process_count(static_cast<int>(config.model.cuts.size()) + 1, config.pipeline, membership.size);
  const auto timeout =
      std::chrono::duration<double>(parse_seconds(config.pipeline.timeout, "pipeline.timeout"));
  return join_group(
      membership, std::chrono::ceil<std::chrono::milliseconds>(timeout),
      handshake_of(config, membership.size, flags),
      [&](const std::vector<std::string>& handshakes) { check_handshakes(membership.rank, handshakes); },
      waiting);
}

}  // namespace strait
