#include "strait/transport/membership.h"

#include <array>
#include <cstdlib>

#include "strait/base/error.h"
#include "strait/base/text.h"

namespace strait {
namespace {

constexpr int kMaxRanks = 1 << 16;
constexpr int kMaxPort = (1 << 16) - 1;
constexpr size_t kMaxRunName = 200;  // of torchrun's, so that it fits into the name of an attempt

/// What a launcher calls the numbers.
struct Launcher {
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};

constexpr Launcher kTorchrun = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Launcher kOpenMpi = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                               "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Launcher kSlurm = {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
                             "SLURM_STEP_TASKS_PER_NODE"};
constexpr std::array kLaunchers = {&kTorchrun, &kOpenMpi, &kSlurm};

int number(const Environment& environment, const char* name, std::optional<int> fallback, int low, int high) {
  const auto text = environment(name);
  if (!text) {
    if (fallback) return *fallback;
    throw InputError("{}: expected a number from {} to {}, found that the variable is not set", name, low,
                     high);
  }
  return static_cast<int>(parse_integer(*text, name, low, high));
}

/// Slurm says "2(x3),1"; the first number is right for the first machines, and only a default of threads hangs
/// on it.
int leading_number(const std::string& text) {
  const auto end = text.find_first_not_of("0123456789");
  return end == 0 ? 1 : std::max(1, std::atoi(text.substr(0, end).c_str()));
}

Membership numbers_of(const Launcher& launcher, const Environment& environment) {
  Membership member;
  member.size = number(environment, launcher.size, {}, 1, kMaxRanks);
  member.rank = number(environment, launcher.rank, {}, 0, member.size - 1);
  member.local_rank = number(environment, launcher.local_rank, 0, 0, member.size - 1);
  const auto local_size = environment(launcher.local_size);
  member.local_size = local_size ? leading_number(*local_size) : 1;
  member.master_port = static_cast<uint16_t>(number(environment, "MASTER_PORT", 29500, 1, kMaxPort));
  return member;
}

std::string master_address(const Membership& member, const Environment& environment) {
  if (const auto address = environment("MASTER_ADDR")) return *address;
  if (const auto address = environment("SLURM_LAUNCH_NODE_IPADDR")) return *address;
  if (member.local_size == member.size) return "127.0.0.1";
  throw InputError("MASTER_ADDR: expected the address of rank 0's machine, found that the variable is not set");
}

/// A shell of a Slurm job has some of the variables too; only a step's tasks have all.
const Launcher* launcher_of(const Environment& environment) {
  for (const Launcher* launcher : kLaunchers) {
    if (environment(launcher->rank) && environment(launcher->size)) return launcher;
  }
  if (environment(kTorchrun.rank) || environment(kTorchrun.size)) return &kTorchrun;
  return nullptr;
}

std::string attempt_of(const Environment& environment) {
  if (const auto attempt = environment(kAttemptVariable)) {
    if (attempt->size() > kMaxAttempt) {
      throw InputError("{}: expected at most {} characters, found {}", kAttemptVariable, kMaxAttempt,
                       attempt->size());
    }
    return *attempt;
  }
  const auto run = environment("TORCHELASTIC_RUN_ID");
  return run ? run->substr(0, kMaxRunName) + "/" + environment("TORCHELASTIC_RESTART_COUNT").value_or("0") : "";
}

}  // namespace

std::string Membership::rendezvous_endpoint() const {
  return fmt::format("{}:{} (MASTER_ADDR:MASTER_PORT)", master_address, master_port);
}

std::optional<Membership> membership_of(const Environment& environment) {
  const Launcher* launcher = launcher_of(environment);
  if (launcher == nullptr) return std::nullopt;
  Membership member = numbers_of(*launcher, environment);
  member.master_address = master_address(member, environment);
  if (environment("TORCHELASTIC_USE_AGENT_STORE") == "True") member.store_host = StoreHost::torchrun;
  member.attempt = attempt_of(environment);
  return member;
}

std::vector<std::string> environment_of_one_process() {
  std::vector<std::string> environment;
  for (const Launcher* launcher : kLaunchers) {
    for (const char* name : {launcher->rank, launcher->size}) environment.push_back(std::string(name) + "=");
  }
  return environment;
}

std::optional<Membership> membership_of_process() {
  return membership_of([](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  });
}

}  // namespace strait
