#include "strait/kernels/signs.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/kernels/numbers.h"

namespace strait::kernels {
namespace {

TEST(Signs, ABitForEachElementAndBack) {
  for (const size_t size : kSizes) {
    auto x = numbers(size, static_cast<unsigned>(size) + 1);
    x[0] = -0.0F;  // no number below 0
    std::vector<std::byte> packed((size + 7) / 8);
    pack_signs(x, packed);
    for (size_t i = 0; i < packed.size() * 8; ++i) {
      const bool is_set = (std::to_integer<unsigned>(packed[i / 8]) >> (i % 8) & 1) != 0;
      EXPECT_EQ(is_set, i < size && x[i] < 0) << i << " of " << size;
    }
    std::vector<float> out(size, 9);
    unpack_signs(packed, 1.5F, -0.25F, out);
    for (size_t i = 0; i < size; ++i) EXPECT_EQ(out[i], x[i] < 0 ? -0.25F : 1.5F) << i << " of " << size;
  }
}

}  // namespace
}  // namespace strait::kernels
