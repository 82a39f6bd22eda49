#include <cstddef>
#include <cstdint>
#include <span>

#include "strait/base/error.h"
#include "strait/data/picture.h"

/// Any bytes give a picture of the size that it says or an InputError.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int64_t kPixelsMost = 1 << 16;
  try {
    const auto picture = strait::decode_picture(std::as_bytes(std::span(data, size)), "input", kPixelsMost);
    if (picture.height < 1 || picture.width < 1 || picture.height * picture.width > kPixelsMost)
      __builtin_trap();
    if (picture.rgb.size() != static_cast<size_t>(picture.height * picture.width * 3)) __builtin_trap();
  } catch (const strait::InputError&) {
    return 0;
  }
  return 0;
}
