#include "strait/experiment/handshake.h"

#include "strait/base/units.h"
#include "strait/pipeline/schedules.h"
#include "strait/transport/handshake.h"

namespace strait {
namespace {

/// Keys that may differ from machine to machine, and so from rank to rank.
bool is_local(const Config& config, const std::string& key) {
  return says_a_place(config, key) || key == "train.device" || key == "pipeline.link";
}

/// What the key says.
std::chrono::milliseconds milliseconds_of(const std::string& text, const char* key) {
  return std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(parse_seconds(text, key)));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> shared_settings(const Config& config) {
  auto settings = key_values(config);
  std::erase_if(settings, [&](const auto& setting) { return is_local(config, setting.first); });
  return settings;
}

std::chrono::milliseconds timeout_of(const Config& config) {
  return milliseconds_of(config.pipeline.timeout, "pipeline.timeout");
}

std::string handshake_of(const Config& config, int processes, const std::string& flags) {
  return Handshake{.processes = processes, .flags = flags, .settings = shared_settings(config)}.text();
}

std::shared_ptr<Group> join_training(const Config& config, const Membership& membership,
                                     const std::string& flags, const WaitingFor& waiting) {
  check_process_count(static_cast<int>(config.model.cuts.size()) + 1, config.pipeline, membership.size);
  return join_group(
      {config.pipeline.transport == "c10d" ? Carrier::c10d : Carrier::tcp, config.pipeline.connections},
      membership, timeout_of(config), handshake_of(config, membership.size, flags),
      [&](const std::vector<std::string>& handshakes) { check_handshakes(membership.rank, handshakes); },
      waiting, milliseconds_of(config.pipeline.rejoin, "pipeline.rejoin"));
}

}  // namespace strait
