#pragma once

#include <c10/core/Device.h>

#include <cstdlib>
#include <string>

#include "tests/device/fake_device.h"

namespace strait::test {

/// The device that the tests run on: the one that the variable STRAIT_TEST_DEVICE names, such as cuda:0, else
/// the fake one. A process has one of them: LibTorch's autograd knows no more than one kind of accelerator.
inline at::Device device() {
  const char* const name = std::getenv("STRAIT_TEST_DEVICE");
  return name == nullptr ? fake::device() : at::Device(std::string(name));
}

}  // namespace strait::test
