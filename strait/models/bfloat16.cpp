#include "strait/models/bfloat16.h"

#include <ATen/autocast_mode.h>
#include <torch/torch.h>
#include <torch/version.h>

namespace strait {
namespace {

// One interface for all devices since 2.4; before, one for CUDA and one for the CPU.
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
bool is_enabled(c10::DeviceType device) { return at::autocast::is_autocast_enabled(device); }

void turn(c10::DeviceType device, bool on) { at::autocast::set_autocast_enabled(device, on); }

void choose_type(c10::DeviceType device) { at::autocast::set_autocast_dtype(device, at::kBFloat16); }
#else
bool is_enabled(c10::DeviceType device) {
  return device == at::kCPU ? at::autocast::is_cpu_enabled() : at::autocast::is_enabled();
}

void turn(c10::DeviceType device, bool on) {
  device == at::kCPU ? at::autocast::set_cpu_enabled(on) : at::autocast::set_enabled(on);
}

void choose_type(c10::DeviceType device) {
  device == at::kCPU ? at::autocast::set_autocast_cpu_dtype(at::kBFloat16)
                     : at::autocast::set_autocast_gpu_dtype(at::kBFloat16);
}
#endif

}  // namespace

bool in_bfloat16(c10::DeviceType device) { return is_enabled(device); }

Bfloat16Scope::Bfloat16Scope(c10::DeviceType device) : device_(device), before_(in_bfloat16(device)) {
  choose_type(device_);
  turn(device_, true);
  at::autocast::increment_nesting();
}

// The copies of the parameters in bfloat16 that the outermost scope made are out of date after the next step.
Bfloat16Scope::~Bfloat16Scope() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  turn(device_, before_);
}

bool has_bfloat16(c10::Device device) {
  const torch::NoGradGuard no_grad;
  try {
    const at::Tensor square = at::ones({16, 16}, at::TensorOptions(at::kFloat).device(device));
    const Bfloat16Scope scope(device.type());
    const at::Tensor product = at::matmul(square, square);
    return product.scalar_type() == at::kBFloat16 && product.sum().item<double>() == 16.0 * 16 * 16;
  } catch (const c10::Error&) {
    return false;
  }
}

}  // namespace strait
