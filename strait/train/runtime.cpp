#include "strait/train/runtime.h"

#include <malloc.h>
#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>

#include "strait/base/cores.h"
#include "strait/base/error.h"

namespace strait {
namespace {

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

}  // namespace

void configure_runtime(int threads, int processes) {
  constexpr int kLargestHeapBlock = 32 << 20;  // glibc accepts no more
  mallopt(M_MMAP_THRESHOLD, kLargestHeapBlock);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  const int cores = static_cast<int>(available_cores().size());
  at::set_num_threads(threads > 0 ? threads : std::max(1, cores / processes));
}

c10::Device device_of(const std::string& name) {
  if (name == "cpu") return at::kCPU;
  const bool cuda = torch::cuda::is_available();
  if (name == "cuda" && !cuda) {
    throw InputError("train.device: cuda is not available here; expected auto or cpu");
  }
  return cuda ? at::kCUDA : at::kCPU;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

std::string machine_description() {
  return fmt::format("{}, {} threads, LibTorch {}", processor_name(), at::get_num_threads(), TORCH_VERSION);
}

}  // namespace strait
