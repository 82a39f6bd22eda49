#pragma once

#include "strait/transport/group.h"

namespace strait {

/// What a link between two ranks carries, measured while nothing else crosses it.
struct LinkSpeed {
  double up = 0;               ///< bytes per second from the lower rank to the higher
  double down = 0;             ///< bytes per second from the higher rank to the lower
  double latency_seconds = 0;  ///< half of the median round trip of a small message
};

/// Measures the link to another rank, which calls this too; both get the result. Each way is measured for about
/// `seconds`, with messages that begin small and grow, so that a slow link takes no longer than a fast one. A
/// link of a long latency and a high rate needs longer than the second that is usual: what crosses it grows
/// from a small beginning. Throws Error when the other rank does not answer.
LinkSpeed measure_link(Group& group, int other, double seconds);

/// Seconds by which the other rank's clock is ahead of this one's, right to half of the shortest round trip.
/// The other one calls answer_clock() meanwhile.
double measure_clock(Group& group, int other);

/// Tells the other rank, which calls measure_clock(), what time it is here.
void answer_clock(Group& group, int other);

}  // namespace strait
