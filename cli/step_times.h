#pragma once

#include <map>
#include <string>
#include <vector>

#include "strait/report/tables.h"

namespace strait::cli {

/// Works out what the steps of runs would take over the networks of a report, and remembers it.
class StepTimes {
 public:
  /// Puts Epoch::step_seconds into the runs. Those of which no step can be simulated stay without: runs without
  /// stage times, of several replicas, or of a configuration that cannot be read.
  void add_to(std::vector<report::Table>& tables);

 private:
  void add_to(report::Run& run);

  std::map<std::string, std::vector<double>> known_;  ///< by key_of() an epoch
};

}  // namespace strait::cli
