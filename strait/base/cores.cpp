#include "strait/base/cores.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/text.h"

namespace strait {
namespace {

/// Empty where the file cannot be read.
std::string file_text(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Of `QUOTA PERIOD`, in microseconds; infinite where the quota is `max`, -1 or missing.
double quota_of(const std::string& limits) {
  double quota = 0;
  double period = 0;
  const bool read = std::sscanf(limits.c_str(), "%lf %lf", &quota, &period) == 2;
  return read && quota > 0 && period > 0 ? quota / period : std::numeric_limits<double>::infinity();
}

}  // namespace

std::vector<int> available_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) {
    throw Error("cannot find out which cores there are: {}", std::strerror(errno));
  }
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

int usable_cores() {
  const double quota = core_quota("/sys/fs/cgroup", file_text("/proc/self/cgroup"));
  const auto cores = static_cast<double>(available_cores().size());
  return std::max(1, static_cast<int>(std::ceil(std::min(cores, quota))));
}

double core_quota(const std::filesystem::path& root, std::string_view groups) {
  const auto first = root / "cpu";  // of the interface's first version, as a container sees it
  double quota = quota_of(file_text(first / "cpu.cfs_quota_us") + " " + file_text(first / "cpu.cfs_period_us"));
  constexpr std::string_view kSecond = "0::/";
  for (const auto& line : split(groups, '\n')) {
    if (!line.starts_with(kSecond)) continue;
    for (std::filesystem::path group = line.substr(kSecond.size());; group = group.parent_path()) {
      quota = std::min(quota, quota_of(file_text(root / group / "cpu.max")));
      if (group.empty()) break;
    }
  }
  return quota;
}

double load_of_others(int own) {
  const auto online = sysconf(_SC_NPROCESSORS_ONLN);
  if (std::cmp_less(available_cores().size(), online)) return 0;
  return load_of_others(file_text("/proc/loadavg"), own) * usable_cores() / static_cast<double>(online);
}

double load_of_others(std::string_view loadavg, int own) {
  double minute = 0;
  int running = 0;
  if (std::sscanf(std::string(loadavg).c_str(), "%lf %*f %*f %d/", &minute, &running) != 2) return 0;
  return std::max(0.0, std::min<double>(minute, running - own));
}

std::vector<int> share_of(std::span<const int> cores, size_t index, size_t count) {
  const auto begin = cores.begin() + static_cast<ptrdiff_t>(cores.size() * index / count);
  const auto end = cores.begin() + static_cast<ptrdiff_t>(cores.size() * (index + 1) / count);
  return {begin, end};
}

}  // namespace strait
