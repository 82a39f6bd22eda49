#pragma once

#include <c10/core/Device.h>

namespace strait {

/// For its lifetime matrix products and convolutions of this thread on such a device are in bfloat16, with the
/// rest as PyTorch's autocast has it: parameters stay float32, what needs the range is computed in float32. It
/// is for the forward pass; one that is repeated within the backward pass needs a scope of its own.
class Bfloat16Scope {
 public:
  /// Begins the scope for devices of this type.
  explicit Bfloat16Scope(c10::DeviceType device);
  ~Bfloat16Scope();
  Bfloat16Scope(const Bfloat16Scope&) = delete;
  Bfloat16Scope& operator=(const Bfloat16Scope&) = delete;

 private:
  c10::DeviceType device_;
  bool before_;
};

/// Whether this thread is in such a scope for such a device.
bool in_bfloat16(c10::DeviceType device);

/// Whether a matrix product in such a scope works on the device, found by trying.
bool has_bfloat16(c10::Device device);

}  // namespace strait
