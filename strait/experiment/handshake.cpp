#include "strait/experiment/handshake.h"

#include "strait/base/units.h"
#include "strait/pipeline/schedules.h"
#include "strait/transport/handshake.h"

namespace strait {
namespace {

/// Keys that may differ from machine to machine.
bool is_local(const std::string& key) {
  return key == "data.root" || key == "compression.store.place" || key == "compression.store.folder" ||
         key == "train.device";
}

}  // namespace

std::string handshake_of(const Config& config, int processes, const std::string& flags) {
  Handshake handshake{.processes = processes, .flags = flags};
  for (auto& setting : key_values(config)) {
    if (!is_local(setting.first)) handshake.settings.push_back(std::move(setting));
  }
  return handshake.text();
}

std::shared_ptr<Group> join_training(const Config& config, const Membership& membership,
                                     const std::string& flags, const WaitingFor& waiting) {
  check_process_count(static_cast<int>(config.model.cuts.size()) + 1, config.pipeline, membership.size);
  const auto time = [](const std::string& text, const char* key) {
    return std::chrono::ceil<std::chrono::milliseconds>(
        std::chrono::duration<double>(parse_seconds(text, key)));
  };
  return join_group(
      config.pipeline.transport == "tcp" ? Carrier::tcp : Carrier::c10d, membership,
      time(config.pipeline.timeout, "pipeline.timeout"), handshake_of(config, membership.size, flags),
      [&](const std::vector<std::string>& handshakes) { check_handshakes(membership.rank, handshakes); },
      waiting, time(config.pipeline.rejoin, "pipeline.rejoin"));
}

}  // namespace strait
