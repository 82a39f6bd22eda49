#include "cli/library_variables.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace strait::cli {
namespace {

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

bool is_set(const char* variable) { return std::getenv(variable) != nullptr; }

/// Sets what is missing; gives whether anything was.
bool set_variables() {
  const char* kernels =
      is_set("OPENBLAS_CORETYPE") || chosen_kernels() != "Prescott" ? nullptr : kernels_for_instructions();
  if (kernels != nullptr) ::setenv("OPENBLAS_CORETYPE", kernels, /*overwrite=*/0);
  const bool waits = is_set("OMP_WAIT_POLICY") || is_set("GOMP_SPINCOUNT");
  if (!waits) {
    ::setenv("OMP_WAIT_POLICY", "passive", /*overwrite=*/0);
    ::setenv("GOMP_SPINCOUNT", "1000", /*overwrite=*/0);
  }
  return kernels != nullptr || !waits;
}

}  // namespace

void choose_library_variables(char** argv) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error && set_variables())
    ::execv(self.c_str(), argv);  // where it returns, the libraries' choice has to do
}

}  // namespace strait::cli
