#include "strait/kernels/target.h"

#include <hwy/highway.h>

#include <algorithm>
#include <cstdlib>

#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/kernels/dispatch.h"

namespace strait::kernels {
namespace {

const std::vector<int64_t>& compiled_targets() {
  static const auto kTargets = hwy::SupportedAndGeneratedTargets();
  return kTargets;
}

/// Makes the choice of STRAIT_KERNELS, if any, Highway's.
int64_t choose() {
  const auto& targets = compiled_targets();
  const char* wanted = std::getenv("STRAIT_KERNELS");
  if (wanted == nullptr || *wanted == '\0') return targets.front();
  const std::string name = wanted == std::string("SCALAR") ? hwy::TargetName(targets.back()) : wanted;
  const auto found = std::ranges::find(targets, name, &hwy::TargetName);
  if (found == targets.end()) {
    throw InputError("STRAIT_KERNELS: expected one of: {}; found \"{}\"", list_of(kernel_targets()), wanted);
  }
  hwy::SetSupportedTargetsForTest(*found);
  hwy::GetChosenTarget().Update(*found);
  return *found;
}

}  // namespace

int64_t chosen_target() {
  static const int64_t kTarget = choose();
  return kTarget;
}

std::vector<std::string> kernel_targets() {
  std::vector<std::string> names;
  for (const int64_t target : compiled_targets()) names.emplace_back(hwy::TargetName(target));
  return names;
}

}  // namespace strait::kernels
