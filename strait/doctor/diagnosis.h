#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strait/doctor/places.h"
#include "strait/transport/group.h"
#include "strait/transport/measure.h"

namespace strait {

/// What a process knows of itself and of its machine.
struct RankFacts {
  int rank = 0;                 ///< of the process
  std::string host;             ///< what the machine calls itself
  std::string processor;        ///< its model
  int cores = 1;                ///< that the process can keep busy
  uint64_t free_memory = 0;     ///< bytes
  std::string folder;           ///< where the run's files will lie
  uint64_t free_disk = 0;       ///< bytes, there
  uint64_t wire_version = 0;    ///< kWireVersion
  std::string code_version;     ///< see code_version()
  std::string library_version;  ///< of LibTorch
  uint64_t send_buffer = 0;  ///< most bytes that a TCP connection may have sent and not confirmed; 0: not known
  uint64_t receive_buffer = 0;    ///< and that may lie here unread; 0: not known
  uint64_t weight_bytes = 0;      ///< of its stages' parameters; 0 where there is a problem
  uint64_t checkpoint_bytes = 0;  ///< that its parts of the checkpoints take at least while one is written
  std::string problem = {};       ///< why `strait train` could not begin here; empty where nothing is wrong
  std::string address = {};       ///< where it listens for the others; empty: not known
  double clock_ahead = 0;         ///< seconds by which its clock is ahead of rank 0's

  /// What all must have alike; see shared_settings().
  std::vector<std::pair<std::string, std::string>> settings = {};

  /// Bytes of memory that it needs at least: its weights and their gradients.
  uint64_t training_bytes() const { return 2 * weight_bytes; }
};

/// Two ranks, how they speak with each other, and how fast.
struct PairReport {
  RankPair ranks;                       ///< which
  Route route = Route::none;            ///< how
  uint64_t outages = 0;                 ///< times without a connection while they were examined
  uint64_t connections = 1;             ///< that carry their messages side by side
  std::optional<LinkSpeed> speed = {};  ///< of those that exchange much
};

/// What was found out about the ranks of a run before it begins.
struct Diagnosis {
  std::string name;                            ///< of the configuration
  std::vector<RankFacts> ranks = {};           ///< all, in order
  std::vector<PairReport> pairs = {};          ///< all, by the lower and then by the higher rank
  std::vector<BoundaryPlace> boundaries = {};  ///< of the configuration

  /// What is known of a pair, or nothing.
  const PairReport* find(const RankPair& ranks) const;

  /// What the pair is for: `boundary layer1`, `gradients of replicas`, in several words where it has several
  /// uses; empty where it is for little.
  std::string use_of(const RankPair& ranks) const;
};

/// `none`, `local`, `direct` or `relayed`.
std::string to_string(Route route);

/// The other way round; nothing where the name is none of these.
std::optional<Route> parse_route(std::string_view name);

}  // namespace strait
