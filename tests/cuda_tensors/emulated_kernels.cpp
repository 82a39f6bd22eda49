#include "tests/cuda_tensors/emulated_kernels.h"

#include <ATen/ATen.h>

#include "strait/codecs/cuda/cuda_kernels.h"
#include "tests/device/fake_device.h"

namespace strait {
namespace {

at::Tensor there(const at::Tensor& result) { return result.defined() ? result.to(fake::device()) : result; }

SparseParts here(const SparseParts& parts) { return {parts.bitmaps.cpu(), parts.values.cpu()}; }

/// Calls work(feedback) with the state in memory of the CPU, and takes that back.
template <class Work>
auto with_state(const KernelFeedback& feedback, const Work& work) {
  if (feedback.rule == KernelFeedback::Rule::none) return work(feedback);
  const KernelFeedback near{feedback.rule, feedback.state.cpu()};
  auto result = work(near);
  at::Tensor(feedback.state).copy_(near.state);
  return result;
}

/// Calls work(sum) likewise.
template <class Work>
bool with_sum(at::Tensor& sum, const Work& work) {
  at::Tensor near = sum.cpu();
  const bool is_right = work(near);
  sum.copy_(near);
  return is_right;
}

}  // namespace

EmulatedKernels::EmulatedKernels() { set_device_kernels(fake::device().type(), this); }
EmulatedKernels::~EmulatedKernels() { set_device_kernels(fake::device().type(), nullptr); }

at::Tensor EmulatedKernels::write_groups(const at::Tensor& x, const GroupForm& form,
                                         const KernelFeedback& feedback) const {
  ++calls_;
  return there(with_state(
      feedback, [&](const KernelFeedback& near) { return cuda_kernels().write_groups(x.cpu(), form, near); }));
}

at::Tensor EmulatedKernels::read_groups(const at::Tensor& message, const GroupForm& form) const {
  ++calls_;
  return there(cuda_kernels().read_groups(message.cpu(), form));
}

bool EmulatedKernels::add_groups(const at::Tensor& message, const GroupForm& form, at::Tensor& sum) const {
  ++calls_;
  return with_sum(sum, [&](at::Tensor& near) { return cuda_kernels().add_groups(message.cpu(), form, near); });
}

at::Tensor EmulatedKernels::narrow(const at::Tensor& x, PlainValue type) const {
  ++calls_;
  return there(cuda_kernels().narrow(x.cpu(), type));
}

at::Tensor EmulatedKernels::widen(const at::Tensor& bytes, PlainValue type) const {
  ++calls_;
  return there(cuda_kernels().widen(bytes.cpu(), type));
}

SparseParts EmulatedKernels::write_largest(const at::Tensor& groups, int64_t k, PlainValue type,
                                           const KernelFeedback& feedback) const {
  ++calls_;
  const SparseParts parts = with_state(feedback, [&](const KernelFeedback& near) {
    return cuda_kernels().write_largest(groups.cpu(), k, type, near);
  });
  return {there(parts.bitmaps), there(parts.values)};
}

at::Tensor EmulatedKernels::read_sparse(const SparseParts& parts, int64_t n, int64_t k, PlainValue type) const {
  ++calls_;
  return there(cuda_kernels().read_sparse(here(parts), n, k, type));
}

bool EmulatedKernels::add_sparse(const SparseParts& parts, int64_t k, PlainValue type, at::Tensor& sum) const {
  ++calls_;
  return with_sum(sum, [&](at::Tensor& near) { return cuda_kernels().add_sparse(here(parts), k, type, near); });
}

}  // namespace strait
