#include "strait/pipeline/half_range.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/isfinite.h>

#include "strait/base/error.h"

namespace strait {

void expect_in_range(const at::Tensor& narrowed, std::string_view what) {
  const at::ScalarType type = narrowed.scalar_type();
  if ((type != at::kHalf && type != at::kBFloat16) || at::isfinite(narrowed).all().item<bool>()) return;
  throw NumericError("{}: a value that the receiver sees is past the range of {}", what, c10::toString(type));
}

}  // namespace strait
