#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace strait::fake {

/// Streams that the device has, the default one among them.
inline constexpr size_t kStreams = 32;

/// Of each stream, how many of its operations are known to be done: a vector clock.
using Clock = std::array<uint64_t, kStreams>;

/// Which operations used a piece of memory.
struct Uses {
  size_t owner = 0;                ///< the stream that it was allocated on
  uint64_t written_at = 0;         ///< by the last that wrote it
  size_t writer = 0;               ///< the stream of that one
  Clock read_at = {};              ///< by the last of each stream that read it
  std::bitset<kStreams> recorded;  ///< the streams that the allocator was told use it too

  /// A copy from the host that has not happened yet; whatever uses the memory makes it happen before.
  std::function<void()> late_write;
};

/// What is known of the order of the device's operations. All members lock.
class Streams {
 public:
  /// An operation of a stream that reads and writes these. Notes races.
  void run(size_t stream, const std::vector<Uses*>& reads, const std::vector<Uses*>& writes);

  /// The memory is given back. Notes whether another stream may still use it.
  void release(const Uses& uses);

  /// Puts something off until the stream is waited for.
  void put_off(size_t stream, std::function<void()> work);

  /// The clock of a stream now: what an event records.
  Clock record(size_t stream);

  /// The stream goes on only behind the event.
  void block(size_t stream, const Clock& event);

  /// The host waits for an event, or for all of a stream; what was put off happens.
  void wait_for(const Clock& event);

  /// Whether the host has waited for it, or for what is behind it.
  bool has_waited_for(const Clock& event);

  /// Messages since the last call.
  std::vector<std::string> take_races();

 private:
  struct Late {
    size_t stream;
    uint64_t time;
    std::function<void()> work;
  };
  bool is_behind(size_t stream, size_t other, uint64_t time) const;
  void note(std::string message);

  std::mutex mutex_;
  std::array<Clock, kStreams> clocks_ = {};
  Clock host_ = {};  ///< what the host has waited for
  std::vector<Late> late_;
  std::vector<std::string> races_;
};

}  // namespace strait::fake
