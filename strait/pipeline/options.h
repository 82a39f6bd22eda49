#pragma once

#include <string>

namespace strait {

/// The [pipeline] table of a configuration.
struct PipelineOptions {
  std::string schedule = "1f1b";  ///< gpipe | 1f1b | interleaved
  int micro_batches = 1;          ///< parts into which a batch is cut
  int stages_per_rank = 1;        ///< more than one for interleaved alone; divides the stages
  std::string timeout = "60s";    ///< how long a process waits for another before it gives up

  bool operator==(const PipelineOptions&) const = default;
};

}  // namespace strait
