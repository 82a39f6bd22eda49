#include "strait/codecs/finite.h"

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
  return std::bit_cast<uint32_t>(x.abs().max().item<float>()) & 0x7fffffff;
}

}  // namespace strait
