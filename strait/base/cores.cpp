#include "strait/base/cores.h"

#include <sched.h>

#include <cerrno>
#include <cstring>

#include "strait/base/error.h"

namespace strait {

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

std::vector<int> share_of(std::span<const int> cores, size_t index, size_t count) {
  const auto begin = cores.begin() + static_cast<ptrdiff_t>(cores.size() * index / count);
  const auto end = cores.begin() + static_cast<ptrdiff_t>(cores.size() * (index + 1) / count);
  return {begin, end};
}

}  // namespace strait
