#include "strait/codecs/fused_feedback.h"

#include <ATen/core/ivalue.h>

#include "strait/base/error.h"
#include "strait/codecs/device_payload.h"

namespace strait {

IndexSet FusedByKernels::write_sum(const at::Tensor& x, const at::Tensor& residual, at::Tensor& left,
                                   const MessageContext& context, ByteWriter& out) const {
  left = residual.clone(at::MemoryFormat::Contiguous);
  copy_payload(encode_by(*kernels_of(x.device()), x, {KernelFeedback::Rule::sum, left}, context), out);
  return {};
}

IndexSet FusedByKernels::write_difference(const at::Tensor& x, at::Tensor& estimate,
                                          const MessageContext& context, ByteWriter& out) const {
  const at::Tensor next = estimate.clone(at::MemoryFormat::Contiguous);
  copy_payload(encode_by(*kernels_of(x.device()), x, {KernelFeedback::Rule::difference, next}, context), out);
  estimate = next;
  return {};
}

IndexSet FusedByKernels::read_difference(ByteReader& in, at::Tensor& estimate,
                                         const MessageContext& /*context*/) const {
  estimate = estimate.contiguous();
  if (!add_by(*kernels_of(estimate.device()), take_payload(in, estimate.device()), estimate)) {
    throw WireError("bytes that the codec does not write");
  }
  return {};
}

}  // namespace strait
