#pragma once

#include <ATen/core/Tensor.h>

#include "strait/base/bytes.h"

namespace strait {

/// Copies a payload, uint8 of one dimension, from its device to where it is written.
void copy_payload(const at::Tensor& payload, ByteWriter& out);

/// All that is left to read, uint8 of one dimension, on a device other than the CPU.
at::Tensor take_payload(ByteReader& in, c10::Device device);

}  // namespace strait
