#include "cli/blas.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace strait::cli {
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

void choose_blas_kernels(char** argv) {
  if (std::getenv(kChoice) != nullptr || chosen_kernels() != "Prescott") return;
  const char* kernels = kernels_for_instructions();
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (kernels == nullptr || error) return;
  ::setenv(kChoice, kernels, /*overwrite=*/1);
  ::execv(self.c_str(), argv);  // where it returns, the slow kernels have to do
}

}  // namespace strait::cli
