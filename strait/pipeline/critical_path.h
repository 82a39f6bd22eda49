#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace strait {

/// What takes time in a pipeline.
enum class Work : uint8_t { compute, codec, wire, latency };

/// Where the time of a step goes, in seconds. The critical path is followed back from the end: every work on
/// it began when another one ended, on the same lane (a rank's computation, its codec, its wire) or the one
/// that made what it needed; where both ended together, the one on the lane counts. Nothing on the path
/// waits, so the parts add up to the step.
///
/// The bubble is the computation on the path beyond what the busiest rank computes in all: other ranks'
/// work that the pipeline has to wait for while it fills and drains, which a faster codec or wire would not
/// shorten. A step that is bound by messages has little of it, however long its ranks are idle.
struct TimeShares {
  double compute = 0;  ///< without the bubble
  double bubble = 0;   ///< computation of other ranks
  double codec = 0;    ///< encoding and decoding
  double wire = 0;     ///< transmission
  double latency = 0;  ///< messages on their way

  /// The length of the step.
  double total() const { return compute + bubble + codec + wire + latency; }

  /// The name of the largest part, the first of equal ones.
  std::string_view largest() const;
};

/// A point in time, and the work that ended at it.
struct Moment {
  /// The cause of what begins with the step.
  static constexpr int32_t kBeginning = -1;

  double time = 0;             ///< seconds from the beginning of the step
  int32_t cause = kBeginning;  ///< the number of the work in its WorkLog, or kBeginning
};

/// The first where they are at the same time.
inline const Moment& later(const Moment& a, const Moment& b) { return b.time > a.time ? b : a; }

/// All work that was done, each with the one at whose end it began. Work of no time leaves no trace.
class WorkLog {
 public:
  /// The moment at which `seconds` of work are over that begin at `start`.
  Moment perform(Work work, const Moment& start, double seconds);

  /// The parts of the time until `end`; `busiest` is the seconds of computation of the busiest rank.
  TimeShares shares_until(const Moment& end, double busiest) const;

 private:
  struct Entry {
    double seconds;
    int32_t cause;
    Work work;
  };
  std::vector<Entry> entries_;
};

}  // namespace strait
