#include "strait/train/runtime.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <malloc.h>
#include <torch/cuda.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "strait/base/cores.h"
#include "strait/base/error.h"
#include "strait/base/host.h"
#include "strait/base/units.h"
#include "strait/train/options.h"

namespace strait {
namespace {

/// The first number of OMP_NUM_THREADS, which may have one for each level of nesting; 0 where it is not set or
/// is none. Throws InputError for more threads than can be started.
int wanted_threads() {
  const char* wanted = std::getenv("OMP_NUM_THREADS");
  const int64_t threads = wanted == nullptr ? 0 : std::max(0L, std::strtol(wanted, nullptr, 10));
  if (threads <= kMostThreads) return static_cast<int>(threads);
  throw InputError("OMP_NUM_THREADS: expected at most {}, found {}", kMostThreads, wanted);
}

}  // namespace

int thread_count(int threads, int processes) {
  if (threads > 0) return threads;
  const int wanted = wanted_threads();
  return wanted > 0 ? wanted : std::max(1, usable_cores() / processes);
}

std::string crowding_note(int threads, int processes, int cores, double others) {
  if (threads == 1) return "";
  const int all = threads * processes;
  if (all > cores) {
    return fmt::format("note: {} threads share {}, which is slower than one thread each (train.threads)", all,
                       count_text(cores, "core"));
  }
  const double free = std::max(0.0, cores - others);
  if (free > 0.5 * cores) return "";
  return fmt::format(
      "note: other programs keep {:.1f} of {} cores busy; each step waits for its slowest thread, so that "
      "train.threads = {} may be faster",
      std::min<double>(others, cores), cores, std::max(1, static_cast<int>(free) / processes));
}

void configure_runtime(int threads, int processes) {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  at::set_num_threads(thread_count(threads, processes));
}

c10::Device device_of(const std::string& name, std::string_view given_for) {
  const auto count = static_cast<int64_t>(torch::cuda::device_count());
  if (name == "cpu" || (name == "auto" && count == 0)) return at::kCPU;
  if (count == 0) {
    throw InputError(
        "{}: {} is not available: no GPU, no driver, or a LibTorch without CUDA; expected auto or cpu",
        given_for, name);
  }
  const size_t colon = name.find(':');
  const int64_t number = colon == std::string::npos ? 0 : std::stoll(name.substr(colon + 1));
  if (number >= count)
    throw InputError("{}: there is no {}, expected cuda:0 to cuda:{}", given_for, name, count - 1);
  return {at::kCUDA, static_cast<c10::DeviceIndex>(number)};
}

std::string machine_description(c10::Device device) {
  const auto cards = device.is_cuda() ? card_names() : std::vector<std::string>();
  return fmt::format("{}, {}{}{}, LibTorch {}", processor_name(), count_text(at::get_num_threads(), "thread"),
                     cards.empty() ? "" : ", ", fmt::join(cards, " and "), library_version());
}

std::string library_version() { return TORCH_VERSION; }

}  // namespace strait
