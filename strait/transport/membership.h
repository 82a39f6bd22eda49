#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace strait {

/// Who serves the keys and values in which the ranks meet.
enum class StoreHost { first_rank, torchrun };

/// A process's place among those that train together, as its launcher says.
struct Membership {
  int rank = 0;                                  ///< from 0, below `size`
  int size = 1;                                  ///< processes that train together
  int local_rank = 0;                            ///< from 0, below `local_size`
  int local_size = 1;                            ///< processes on this machine
  std::string master_address;                    ///< where the store is; a name or a number
  uint16_t master_port = 29500;                  ///< where the store listens
  StoreHost store_host = StoreHost::first_rank;  ///< who serves the store
  std::string attempt;                           ///< tells apart the starts that could meet at one place

  /// Whether this process serves the store itself.
  bool serves_store() const { return rank == 0 && store_host == StoreHost::first_rank; }

  /// `10.0.0.1:29500 (MASTER_ADDR:MASTER_PORT)`, for messages.
  std::string rendezvous_endpoint() const;
};

/// Gives the value of an environment variable, or nothing.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// What `strait launch` sets for its processes besides: the attempt's name, which nobody can guess. A person
/// who sets the variables by hand may name the attempt too.
inline constexpr const char* kAttemptVariable = "STRAIT_ATTEMPT";

/// Most bytes of an attempt's name.
inline constexpr size_t kMaxAttempt = 256;

/// Reads the variables of torchrun (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT), else those of Open
/// MPI, else those of a Slurm job step. Nothing where no launcher has set any. Throws InputError that names
/// the variable that is missing or wrong.
std::optional<Membership> membership_of(const Environment& environment);

/// That of this process.
std::optional<Membership> membership_of_process();

/// NAME=VALUE for a child that is by itself, whatever the place of this process: what a launcher has set counts
/// as not set.
std::vector<std::string> environment_of_one_process();

}  // namespace strait
