#include "strait/base/library_variables.h"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace strait {
namespace {

constexpr const char* kChoice = "OPENBLAS_CORETYPE";

/// The kernels that OpenBLAS has chosen; empty with another library.
std::string_view chosen_kernels() {
  using NameFunction = char* (*)();
  const auto name = reinterpret_cast<NameFunction>(::dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  return name == nullptr ? std::string_view() : name();
}

/// What OpenBLAS calls the kernels for this processor's instructions; null where its last resort is right.
const char* kernels_for_instructions() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq")) {
    return "SkylakeX";
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return nullptr;
}

}  // namespace

// May run before the C library knows the environment: what it needs is the kernel's alone.
__attribute__((no_sanitize("address", "undefined"))) void let_waiting_threads_sleep(int /*argc*/, char** argv,
                                                                                    char** variables) {
  static char policy[] = "OMP_WAIT_POLICY=passive";
  static char spin_count[] = "GOMP_SPINCOUNT=50000";
  size_t count = 0;
  for (; variables[count] != nullptr; ++count) {
    const std::string_view variable = variables[count];
    if (variable.starts_with("OMP_WAIT_POLICY=") || variable.starts_with("GOMP_SPINCOUNT=")) return;
  }
  auto** all = static_cast<char**>(__builtin_alloca((count + 3) * sizeof(char*)));
  for (size_t i = 0; i < count; ++i) all[i] = variables[i];
  all[count] = policy;
  all[count + 1] = spin_count;
  all[count + 2] = nullptr;
  char self[PATH_MAX] = {};
  if (::readlink("/proc/self/exe", self, sizeof(self) - 1) <= 0) return;
  ::execve(self, argv, all);  // where it returns, the threads wait as the library would have it
}

void choose_blas_kernels(char** argv) {
  if (std::getenv(kChoice) != nullptr || chosen_kernels() != "Prescott") return;
  const char* kernels = kernels_for_instructions();
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (kernels == nullptr || error) return;
  ::setenv(kChoice, kernels, /*overwrite=*/1);
  ::execv(self.c_str(), argv);  // where it returns, the slow kernels have to do
}

}  // namespace strait
