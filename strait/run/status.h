#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace strait {

/// How far a run has come, as status.json says it; `waiting` is that of a sweep's run that has not begun.
enum class RunStatus { waiting, running, stopped, done, diverged, failed };

/// Whether the run has come to an end that is not to be repeated: done or diverged.
constexpr bool is_final(RunStatus status) { return status == RunStatus::done || status == RunStatus::diverged; }

/// The word of status.json.
std::string_view to_string(RunStatus status);

/// Nothing when no status has that name.
std::optional<RunStatus> status_named(std::string_view name);

/// What status.json says of a run beside its scores.
struct StatusRecord {
  RunStatus status = RunStatus::waiting;  ///< how far it has come
  std::string name;                       ///< of the configuration
  uint64_t seed = 0;                      ///< of the configuration
  std::string error;                      ///< why it diverged or failed
  std::string config_hash;                ///< see config_hash()
  std::string code_version;               ///< of the program that wrote it
  std::string machine;                    ///< that it ran on
  double updated = 0;                     ///< when its files were last written, seconds since 1970
  uint64_t epochs = 0;                    ///< that are planned
};

/// Reads the text of a status.json, whose name is for messages. Throws InputError that names the key and what
/// was expected.
StatusRecord parse_status(std::string_view text, const std::string& name);

/// What a folder's status.json says; RunStatus::running where there is none, and for a word that no run writes.
/// Throws InputError when it is not JSON.
RunStatus status_of(const std::filesystem::path& folder);

/// How the run of a configuration with that hash that the folder holds stands; nothing when there is none.
/// Throws InputError when status.json is not what a run writes.
std::optional<RunStatus> recorded_status(const std::string& config_hash, const std::filesystem::path& folder);

/// The machine that the folder's status.json names; empty where there is none.
std::string recorded_machine(const std::filesystem::path& folder);

/// Records the failure of a run that could not do so itself, such as a killed one: where status.json says
/// that it is running, it says failed from now on.
void record_failure(const std::filesystem::path& folder, const std::string& error);

}  // namespace strait
