#include <cstddef>
#include <cstdint>
#include <span>

#include "strait/base/error.h"
#include "strait/formats/safetensors.h"

/// Any bytes give a file or an InputError.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    strait::parse_safetensors(std::as_bytes(std::span(data, size)), "input");
  } catch (const strait::InputError&) {
    return 0;
  }
  return 0;
}
