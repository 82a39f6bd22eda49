#pragma once

#include <c10/core/Device.h>
#include <torch/cuda.h>

#include <string>
#include <vector>

#include "tests/device/fake_device.h"

namespace strait::test {

/// Names of the devices that the tests run on: the fake one, and a GPU where LibTorch has one.
inline std::vector<std::string> devices() {
  std::vector<std::string> all = {"fake"};
  if (torch::cuda::device_count() > 0) all.emplace_back("cuda:0");
  return all;
}

inline at::Device device_of(const std::string& name) {
  return name == "fake" ? fake::device() : at::Device(name);
}

}  // namespace strait::test
