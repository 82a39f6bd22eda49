#include "strait/codecs/device_order.h"

#include <ATen/core/ivalue.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/version.h>

#include "strait/base/error.h"

namespace strait {
namespace {

c10::Stream current_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

/// Older versions of LibTorch have none.
template <class Stream>
void* handle_of(const Stream& stream) {
  if constexpr (requires { stream.native_handle(); }) {
    return stream.native_handle();
  } else {
    throw Error("{}: the handles of its streams need PyTorch 2.11 or later", stream.device().str());
  }
}

}  // namespace

void set_current_device(c10::Device device) {
  if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
}

DevicePoint DevicePoint::here(c10::Device device) {
  DevicePoint point;
  if (device.is_cpu()) return point;
  point.device_ = device;
  point.event_ = std::make_shared<c10::Event>(device.type());
  point.event_->record(current_stream(device));
  return point;
}

void DevicePoint::wait() const {
  if (event_) event_->block(current_stream(*device_));
}

bool DevicePoint::has_passed() const { return !event_ || event_->query(); }

void* current_stream_handle(c10::Device device) { return handle_of(current_stream(device)); }

// Older ones have no times of events.
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)

DeviceMoment DeviceMoment::behind_all(c10::Device device) {
  DeviceMoment moment;
  if (device.is_cpu()) return moment;
  moment.event_ = std::make_shared<c10::Event>(device.type(), c10::EventFlag::BACKEND_DEFAULT);
  moment.event_->record(current_stream(device));
  return moment;
}

double DeviceMoment::seconds_until(const DeviceMoment& later) const {
  if (!event_) return std::chrono::duration<double>(later.host_ - host_).count();
  later.event_->synchronize();
  return event_->elapsedTime(*later.event_) / 1e3;
}

#else

DeviceMoment DeviceMoment::behind_all(c10::Device /*device*/) { return {}; }

double DeviceMoment::seconds_until(const DeviceMoment& later) const {
  return std::chrono::duration<double>(later.host_ - host_).count();
}

#endif

OwnStream::OwnStream(c10::Device device) : device_(device) {
  if (device.is_cpu()) return;
  stream_ = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, /*isHighPriority=*/true);
}

DevicePoint OwnStream::run(const DevicePoint& after, const std::function<void()>& work) const {
  c10::OptionalStreamGuard guard;
  if (stream_) guard.reset_stream(*stream_);
  after.wait();
  work();
  return DevicePoint::here(device_);
}

void keep_for_current_stream(const at::Tensor& tensor) {
  if (!tensor.device().is_cpu()) tensor.record_stream(current_stream(tensor.device()));
}

}  // namespace strait
