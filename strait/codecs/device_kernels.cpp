#include "strait/codecs/device_kernels.h"

#include <ATen/ops/empty.h>

#include <array>
#include <atomic>

#ifdef STRAIT_CUDA_KERNELS
#include "strait/codecs/cuda/cuda_kernels.h"
#endif

namespace strait {
namespace {

constexpr auto kTypes = static_cast<size_t>(at::DeviceType::COMPILE_TIME_MAX_DEVICE_TYPES);

/// Those that strait is built with.
const DeviceKernels* own_kernels([[maybe_unused]] at::DeviceType type) {
#ifdef STRAIT_CUDA_KERNELS
  if (type == at::kCUDA) return &cuda_kernels();
#endif
  return nullptr;
}

/// Those of each kind of device.
class Entries {
 public:
  Entries() {
    for (size_t type = 0; type < kTypes; ++type)
      entries_[type] = own_kernels(static_cast<at::DeviceType>(type));
  }
  std::atomic<const DeviceKernels*>& of(at::DeviceType type) { return entries_.at(static_cast<size_t>(type)); }

 private:
  std::array<std::atomic<const DeviceKernels*>, kTypes> entries_ = {};
};

std::atomic<const DeviceKernels*>& entry(at::DeviceType type) {
  static Entries entries;
  return entries.of(type);
}

}  // namespace

const DeviceKernels* kernels_of(c10::Device device) {
  const DeviceKernels* const kernels = entry(device.type()).load();
  return kernels != nullptr && kernels->serve(device) ? kernels : nullptr;
}

void set_device_kernels(at::DeviceType type, const DeviceKernels* kernels) { entry(type).store(kernels); }

at::Tensor write_by_kernels(const at::Tensor& x, const Scope& scope, const GroupForm& form) {
  const DeviceKernels* const kernels = kernels_of(x.device());
  return kernels == nullptr ? at::Tensor() : kernels->write_groups(scope.in_order(x), form, {});
}

at::Tensor read_by_kernels(const at::Tensor& message, const MessageMeta& meta, const Scope& scope,
                           const GroupForm& form) {
  const DeviceKernels* const kernels = kernels_of(message.device());
  const at::Tensor values = kernels == nullptr ? at::Tensor() : kernels->read_groups(message, form);
  return values.defined() ? scope.from_order(values, at::empty(meta.shape, values.options())) : values;
}

}  // namespace strait
