#pragma once

#include <string>
#include <vector>

namespace strait {

/// The [pipeline] table of a configuration.
struct PipelineOptions {
  std::string schedule = "1f1b";  ///< one of schedule_names()
  int micro_batches = 1;          ///< at most so many parts of a batch (torch.chunk)
  int stages_per_rank = 1;        ///< more than one for interleaved alone; divides the stages
  int replicas = 1;               ///< pipelines side by side, each with its part of every batch
  std::string timeout = "60s";    ///< how long a process waits for another before it gives up
  std::string transport = "tcp";  ///< between processes: tcp, c10d or nccl
  int connections = 1;            ///< between two processes
  std::string rejoin = "0s";      ///< how long the processes wait for one that takes a lost one's place
  std::string link = {};          ///< emulated: what parse_link_rate() takes; empty: none

  bool operator==(const PipelineOptions&) const = default;
};

/// An entry of [[networks]]: links for which every epoch says how long its steps would take over them.
struct NetworkOptions {
  std::string name = {};                   ///< for people
  std::string bandwidth = "unlimited";     ///< at which a process sends, see parse_bandwidth()
  std::string latency = "0s";              ///< of every message, see parse_seconds()
  double compute = 1;                      ///< how many times faster than here the stages compute there
  std::vector<double> stage_seconds = {};  ///< of each stage, forward and backward of a micro-batch, instead of
                                           ///< what is measured here; empty: as measured

  bool operator==(const NetworkOptions&) const = default;
};

}  // namespace strait
