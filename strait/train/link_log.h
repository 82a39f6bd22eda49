#pragma once

#include <map>
#include <vector>

#include "strait/base/trace.h"
#include "strait/run/metrics.h"
#include "strait/transport/group.h"

namespace strait {

/// Follows the ways from this process to the others.
class LinkLog {
 public:
  /// Both must outlive it; `trace`, which gets every outage as an event, may be null.
  LinkLog(Group& group, Trace* trace) : group_(group), trace_(trace) {}

  /// What is worth saying since the last call of the ways to ranks below this process's, so that of the two
  /// ends one says it.
  std::vector<LinkMetrics> take();

 private:
  Group& group_;
  Trace* trace_;
  std::map<int, size_t> said_;  ///< outages, by peer
};

}  // namespace strait
