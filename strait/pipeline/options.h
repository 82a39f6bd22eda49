#pragma once

#include <string>

namespace strait {

/// The [pipeline] table of a configuration.
struct PipelineOptions {
  std::string schedule = "1f1b";  ///< one of schedule_names()
  int micro_batches = 1;          ///< parts into which a batch is cut
  int stages_per_rank = 1;        ///< more than one for interleaved alone; divides the stages
  int replicas = 1;               ///< pipelines side by side, each with its part of every batch
  std::string timeout = "60s";    ///< how long a process waits for another before it gives up
  std::string transport = "tcp";  ///< between processes: tcp or c10d
  std::string rejoin = "0s";      ///< how long the processes wait for one that takes a lost one's place
  std::string link = {};          ///< emulated: what parse_link_rate() takes; empty: none

  bool operator==(const PipelineOptions&) const = default;
};

}  // namespace strait
