#include "strait/codecs/finite.h"

#include <ATen/ops/aminmax.h>
#include <ATen/ops/maximum.h>

#include <bit>

#include "strait/base/error.h"
#include "strait/kernels/half.h"

namespace strait {

void check_largest(uint32_t largest, uint32_t overflow, std::string_view format) {
  if (largest >= kernels::kInfinityBits) throw NumericError("a value is not finite");
  if (largest >= overflow) {
    throw NumericError("a value of magnitude {} is past the range of {}", std::bit_cast<float>(largest),
                       format);
  }
}

uint32_t largest_magnitude(const at::Tensor& x) {
  const auto [least, greatest] = at::aminmax(x);  // NaN where there is one
  return std::bit_cast<uint32_t>(at::maximum(least.abs(), greatest.abs()).item<float>()) & 0x7fffffff;
}

}  // namespace strait
