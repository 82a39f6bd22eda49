#include "strait/base/host.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>

namespace strait {

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

uint64_t free_memory() {
  uint64_t free = std::numeric_limits<uint64_t>::max();
  std::ifstream info("/proc/meminfo");
  for (std::string word; info >> word;) {
    if (word == "MemAvailable:" && info >> free) free *= 1024;
  }
  uint64_t limit = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> limit) free = std::min(free, limit);
  return free;
}

}  // namespace strait
