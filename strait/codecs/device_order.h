#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

namespace c10 {
struct Event;
}

namespace strait {

// The order of a device's operations that several threads give it. Of the CPU, whose operations are done when
// they return, all of this is nothing.

/// Makes it the calling thread's current device. A thread that uses another without this has LibTorch go back
/// to the first card after each use, and take memory there.
void set_current_device(c10::Device device);

/// A point in the order of one stream. May be copied and handed to other threads.
class DevicePoint {
 public:
  /// Before everything.
  DevicePoint() = default;

  /// Behind what the calling thread has given the device's current stream so far.
  static DevicePoint here(c10::Device device);

  /// Has what the calling thread gives the device next come behind it.
  void wait() const;

  /// Whether the device has come to it.
  bool has_passed() const;

 private:
  std::shared_ptr<c10::Event> event_;
  std::optional<c10::Device> device_;
};

/// The calling thread's current stream, as libraries of the device's maker take it. Throws Error with a
/// LibTorch before 2.11.
void* current_stream_handle(c10::Device device);

/// A moment of a device's time, to measure what it did between two.
class DeviceMoment {
 public:
  /// When the device is done with what the calling thread has given its current stream so far. Of the CPU: now.
  static DeviceMoment behind_all(c10::Device device);

  /// Seconds from this one to a later one of the same device. Waits until that one has passed.
  double seconds_until(const DeviceMoment& later) const;

 private:
  std::chrono::steady_clock::time_point host_ = std::chrono::steady_clock::now();
  std::shared_ptr<c10::Event> event_;  ///< of a device
};

/// A stream of a thread's own, so that what it gives the device runs beside what others give it.
class OwnStream {
 public:
  /// A stream of the device; of the CPU none.
  explicit OwnStream(c10::Device device);

  /// Does the work with its operations on this stream, behind `after`. Gives the point behind them.
  DevicePoint run(const DevicePoint& after, const std::function<void()>& work) const;

 private:
  c10::Device device_;
  std::optional<c10::Stream> stream_;  ///< none of the CPU
};

/// Keeps the tensor's memory, when nobody holds it any more, until the calling thread's current stream is done
/// with it, which is another than the one it was made on.
void keep_for_current_stream(const at::Tensor& tensor);

}  // namespace strait
