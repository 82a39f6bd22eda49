#include <cstddef>
#include <cstdint>
#include <span>

#include "strait/base/error.h"
#include "strait/data/cifar10.h"

/// Any bytes give whole records with labels 0 to 9 or an InputError.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  strait::ImageRecords images;
  try {
    strait::append_cifar10_records(std::as_bytes(std::span(data, size)), "input", 0, images);
  } catch (const strait::InputError&) {
    return 0;
  }
  if (images.pixels.size() != images.labels.size() * strait::kImageBytes) __builtin_trap();
  for (const uint8_t label : images.labels) {
    if (label > 9) __builtin_trap();
  }
  return 0;
}
