#pragma once

#include "strait/codecs/codec.h"
#include "strait/codecs/device_kernels.h"

namespace strait {

/// The arithmetic of error feedback around an operator, in the passes that the operator makes anyway. `x` is
/// float32 and contiguous, and so is the state, of the same shape and on the same device. All give the indices
/// that the message keeps where the context wants them.
class FusedFeedback {
 public:
  virtual ~FusedFeedback() = default;

  /// Codec::write() of x + residual; `left` becomes what of it the receiver does not see: of the CPU in the
  /// memory that it has, which is not the residual's.
  virtual IndexSet write_sum(const at::Tensor& x, const at::Tensor& residual, at::Tensor& left,
                             const MessageContext& context, ByteWriter& out) const = 0;

  /// Codec::write() of x - estimate; the estimate moves by what the receiver sees. When it throws, the
  /// estimate has the bits that it had.
  virtual IndexSet write_difference(const at::Tensor& x, at::Tensor& estimate, const MessageContext& context,
                                    ByteWriter& out) const = 0;

  /// Codec::read(), by which the estimate moves. When it throws, the estimate is undefined.
  virtual IndexSet read_difference(ByteReader& in, at::Tensor& estimate,
                                   const MessageContext& context) const = 0;
};

/// The same by kernels of the device on which x is.
class FusedByKernels : public FusedFeedback {
 public:
  IndexSet write_sum(const at::Tensor& x, const at::Tensor& residual, at::Tensor& left,
                     const MessageContext& context, ByteWriter& out) const final;
  IndexSet write_difference(const at::Tensor& x, at::Tensor& estimate, const MessageContext& context,
                            ByteWriter& out) const final;
  IndexSet read_difference(ByteReader& in, at::Tensor& estimate, const MessageContext& context) const final;

 protected:
  /// The codec whose messages these are.
  virtual const Codec& codec() const = 0;

  /// Codec::device_encode() of x with feedback.
  virtual at::Tensor encode_by(const DeviceKernels& kernels, const at::Tensor& x,
                               const KernelFeedback& feedback, const MessageContext& context) const = 0;

  /// Adds what that gave to the sum. False for bytes that no codec writes; then the sum is undefined.
  virtual bool add_by(const DeviceKernels& kernels, const at::Tensor& message, at::Tensor& sum) const = 0;
};

}  // namespace strait
