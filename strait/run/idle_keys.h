#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace strait {

/// Whether a key of a configuration changes nothing that a run computes, whatever the other keys say. So
/// config_hash() leaves it out, and a report takes runs for the same that differ in it alone. What depends on
/// other keys is not among them: the paths that a kind of data has of its own (SettingKey::is_place), and the
/// links, which count where codecs are chosen by time.
inline bool is_idle_key(std::string_view key) {
  constexpr std::array<std::string_view, 8> kKeys = {
      "name",
      "data.root",
      "compression.store.place",
      "compression.store.folder",
      "pipeline.timeout",
      "pipeline.transport",
      "pipeline.connections",
      "pipeline.rejoin",
  };
  return key.starts_with("checkpoint.") || std::ranges::find(kKeys, key) != kKeys.end();
}

}  // namespace strait
