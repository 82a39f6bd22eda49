#include "strait/run/status.h"

#include <array>
#include <nlohmann/json.hpp>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/base/json.h"
#include "strait/base/json_reader.h"

namespace strait {
namespace {

constexpr std::array<std::string_view, 6> kStatusNames = {"waiting", "running",  "stopped",
                                                          "done",    "diverged", "failed"};

nlohmann::json status_json(const std::filesystem::path& folder) {
  const auto path = folder / "status.json";
  auto status = parse_json(read_whole(path, kJsonBytesMost), path.string());
  if (!status.is_object()) throw InputError("{}: expected a JSON object", path.string());
  return status;
}

/// The text at a key; empty where there is none.
std::string text_at(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

RunStatus status_in(const nlohmann::json& object) {
  return status_named(text_at(object, "status")).value_or(RunStatus::running);
}

}  // namespace

std::string_view to_string(RunStatus status) { return kStatusNames.at(static_cast<size_t>(status)); }

std::optional<RunStatus> status_named(std::string_view name) {
  for (size_t i = 0; i < kStatusNames.size(); ++i) {
    if (kStatusNames[i] == name) return static_cast<RunStatus>(i);
  }
  return std::nullopt;
}

StatusRecord parse_status(std::string_view text, const std::string& name) {
  constexpr double kYear10000 = 253402300800;  // in seconds since 1970
  const JsonText parsed(text, name);
  const JsonReader from = parsed.root();
  const auto named = status_named(from.text("status"));
  if (!named) from.at("status").fail("a status of a run");
  StatusRecord record;
  record.status = *named;
  record.name = from.text("name");
  record.seed = from.count("seed");
  record.error = from.optional_text("error");
  record.config_hash = from.text("config_hash");
  record.code_version = from.text("code_version");
  record.machine = from.text("machine");
  record.updated = from.number("updated");
  if (!(record.updated >= 0 && record.updated < kYear10000)) {
    from.at("updated").fail("seconds since 1970, before the year 10000");
  }
  record.epochs = from.count("epochs");
  return record;
}

RunStatus status_of(const std::filesystem::path& folder) {
  if (!is_there(folder / "status.json")) return RunStatus::running;
  return status_in(status_json(folder));
}

std::optional<RunStatus> recorded_status(const std::string& config_hash, const std::filesystem::path& folder) {
  if (!is_there(folder / "status.json")) return std::nullopt;
  const auto record = status_json(folder);
  if (text_at(record, "config_hash") != config_hash) return std::nullopt;
  return status_in(record);
}

std::string recorded_machine(const std::filesystem::path& folder) {
  if (!is_there(folder / "status.json")) return "";
  return text_at(status_json(folder), "machine");
}

void record_failure(const std::filesystem::path& folder, const std::string& error) {
  if (!is_there(folder / "status.json")) return;
  auto record = status_json(folder);
  if (text_at(record, "status") != to_string(RunStatus::running)) return;
  record["status"] = to_string(RunStatus::failed);
  record["error"] = error;
  replace_file(folder / "status.json",
               record.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace strait
