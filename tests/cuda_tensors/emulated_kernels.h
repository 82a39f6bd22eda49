#pragma once

#include <utility>

#include "strait/codecs/device_kernels.h"

namespace strait {

/// The CUDA kernels as the fake device's: they run by the emulation, on copies in memory of the CPU.
class EmulatedKernels : public DeviceKernels {
 public:
  /// Until they are destroyed they serve the fake device.
  EmulatedKernels();
  ~EmulatedKernels() override;
  EmulatedKernels(const EmulatedKernels&) = delete;
  EmulatedKernels& operator=(const EmulatedKernels&) = delete;

  at::Tensor write_groups(const at::Tensor& x, const GroupForm& form,
                          const KernelFeedback& feedback) const override;
  at::Tensor read_groups(const at::Tensor& message, const GroupForm& form) const override;
  bool add_groups(const at::Tensor& message, const GroupForm& form, at::Tensor& sum) const override;
  at::Tensor narrow(const at::Tensor& x, PlainValue type) const override;
  at::Tensor widen(const at::Tensor& bytes, PlainValue type) const override;
  SparseParts write_largest(const at::Tensor& groups, int64_t k, PlainValue type,
                            const KernelFeedback& feedback) const override;
  at::Tensor read_sparse(const SparseParts& parts, int64_t n, int64_t k, PlainValue type) const override;
  bool add_sparse(const SparseParts& parts, int64_t k, PlainValue type, at::Tensor& sum) const override;

  /// Calls since the last one.
  int take_calls() const { return std::exchange(calls_, 0); }

 private:
  mutable int calls_ = 0;
};

}  // namespace strait
