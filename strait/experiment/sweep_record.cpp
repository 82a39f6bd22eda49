#include "strait/experiment/sweep_record.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/base/json_reader.h"

namespace strait {
namespace {

constexpr const char* kSweepFile = "sweep.json";

nlohmann::json run_json(const SweepRun& run, const std::string& hash, const RunState& state) {
  nlohmann::json out = {{"variant", run.variant},
                        {"seed", run.config.seed},
                        {"folder", run.config.name},
                        {"config_hash", hash},
                        {"status", state.status ? to_string(*state.status) : "waiting"}};
  if (run.paper) out["paper"] = {{"on", run.paper->on}};
  if (run.paper && run.paper->off) out["paper"]["off"] = *run.paper->off;
  if (!state.error.empty()) out["error"] = state.error;
  return out;
}

/// What cannot be read concerns this run alone.
RunState recorded_state(const Config& config, const std::filesystem::path& folder) {
  try {
    return {recorded_status(config, folder), ""};
  } catch (const InputError& error) {
    return {RunStatus::failed, error.what()};
  }
}

}  // namespace

SweepRecord::SweepRecord(const Sweep& sweep, std::filesystem::path folder)
    : sweep_(sweep), folder_(std::move(folder)) {
  for (const auto& run : sweep.runs) {
    hashes_.push_back(config_hash(run.config));
    states_.push_back(recorded_state(run.config, folder_ / run.config.name));
  }
}

bool SweepRecord::is_finished(size_t run) const {
  const auto& status = state(run).status;
  return status && is_final(*status);
}

std::vector<std::string> SweepRecord::others_trained(const std::vector<size_t>& runs) const {
  std::vector<std::string> names;
  for (const size_t run : runs) {
    const Config& config = sweep_.runs[run].config;
    const auto folder = folder_ / config.name;
    if (state(run).status) continue;
    if (!is_there(folder / "status.json")) {
      if (holds_results(folder)) names.push_back(fmt::format("{} (without its status.json)", config.name));
      continue;
    }
    if (!is_final(status_of(folder)) && !is_there(folder / "checkpoint")) continue;
    if (!is_there(folder / "config.toml")) {
      names.push_back(fmt::format("{} (without its config.toml)", config.name));
      continue;
    }
    const auto key = differing_key(config, load_config(folder / "config.toml"));
    names.push_back(fmt::format("{} ({})", config.name, key.value_or("in another version of strait")));
  }
  return names;
}

std::optional<std::string> SweepRecord::other_sweep() const {
  const auto path = folder_ / kSweepFile;
  if (!has_file(path)) return std::nullopt;
  const JsonText record(read_whole(path, kJsonBytesMost), path.string());
  const std::string name = record.root().text("name");
  return name == sweep_.name ? std::nullopt : std::optional(name);
}

void SweepRecord::set(size_t run, RunState state) {
  states_.at(run) = std::move(state);
  save();
}

void SweepRecord::save() const {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) throw InputError("{}: cannot make the folder: {}", folder_.string(), error.message());
  nlohmann::json runs = nlohmann::json::array();
  for (size_t i = 0; i < states_.size(); ++i) runs.push_back(run_json(sweep_.runs[i], hashes_[i], states_[i]));
  const nlohmann::json out = {{"name", sweep_.name}, {"title", sweep_.title}, {"runs", std::move(runs)}};
  replace_file(folder_ / kSweepFile, out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace strait
