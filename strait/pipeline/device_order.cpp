#include "strait/pipeline/device_order.h"

#include <ATen/core/ivalue.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace strait {
namespace {

c10::Stream current_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

}  // namespace

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
