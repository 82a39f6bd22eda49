#include "strait/base/host.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <system_error>

namespace strait {

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

std::string machine_mark() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return host_name() + "/" + boot;
}

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

std::vector<std::string> card_names() {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& card : std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", none)) {
    std::ifstream info(card.path() / "information");
    for (std::string line; std::getline(info, line);) {
      if (!line.starts_with("Model:")) continue;
      const std::string name = line.substr(std::min(line.size(), line.find_first_not_of(" \t", 6)));
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  return names;
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
