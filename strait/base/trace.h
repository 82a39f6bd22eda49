#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace strait {

/// What a rank's time goes into; each is a lane of the picture.
enum class Lane : uint8_t { forward, backward, encode, decode, send, receive, wait, link };

/// The lane's name in the picture, such as `forward`.
std::string_view to_string(Lane lane);

/// What happened when on one rank, for Perfetto or chrome://tracing. Threads may add to it.
class Trace {
 public:
  /// The system's clock, which is one for all processes of a machine.
  using Clock = std::chrono::system_clock;

  /// Adds an event from `start` to `end`, to the microsecond.
  void add(Lane lane, std::string name, Clock::time_point start, Clock::time_point end);

  /// The events as objects of Chrome's trace format, separated by commas: a process per rank, a thread per
  /// lane.
  std::string events_json(int rank) const;

 private:
  struct Event {
    Lane lane;
    std::string name;
    int64_t start;     ///< microseconds since the epoch
    int64_t duration;  ///< microseconds
  };
  mutable std::mutex mutex_;
  std::vector<Event> events_;
};

/// Adds an event that lasts from its making to its end. Does nothing without a trace.
class TraceSpan {
 public:
  /// Begins the event `what` at `place` (a stage or a boundary) of a micro-batch; `trace` may be null.
  TraceSpan(Trace* trace, Lane lane, std::string_view what, int place, int micro_batch);
  ~TraceSpan();
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  Trace* trace_;
  Lane lane_;
  std::string name_;
  Trace::Clock::time_point start_;
};

/// The whole file: the events of all ranks.
std::string trace_file(const std::vector<std::string>& events_of_ranks);

}  // namespace strait
