#include "strait/codecs/fused_feedback.h"

#include <ATen/core/ivalue.h>

#include <utility>

#include "strait/base/error.h"
#include "strait/codecs/device_payload.h"

namespace strait {

IndexSet FusedByKernels::write_sum(const at::Tensor& x, const at::Tensor& residual, at::Tensor& left,
                                   const MessageContext& context, ByteWriter& out) const {
  left = residual.clone(at::MemoryFormat::Contiguous);
  const KernelFeedback feedback{KernelFeedback::Rule::sum, left};
  return write_from_device(codec(), encode_by(*kernels_of(x.device()), x, feedback, context), meta_of(x),
                           context, out);
}

IndexSet FusedByKernels::write_difference(const at::Tensor& x, at::Tensor& estimate,
                                          const MessageContext& context, ByteWriter& out) const {
  const at::Tensor next = estimate.clone(at::MemoryFormat::Contiguous);
  const KernelFeedback feedback{KernelFeedback::Rule::difference, next};
  IndexSet indices = write_from_device(codec(), encode_by(*kernels_of(x.device()), x, feedback, context),
                                       meta_of(x), context, out);
  estimate = next;
  return indices;
}

IndexSet FusedByKernels::read_difference(ByteReader& in, at::Tensor& estimate,
                                         const MessageContext& context) const {
  estimate = estimate.contiguous();
  DeviceMessage message = read_to_device(codec(), in, meta_of(estimate), context);
  if (!message.bytes.defined() || in.left() != 0 ||
      !add_by(*kernels_of(estimate.device()), message.bytes, estimate)) {
    throw WireError("bytes that the codec does not write");
  }
  return std::move(message.indices);
}

}  // namespace strait
