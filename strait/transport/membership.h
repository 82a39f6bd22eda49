#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace strait {

/// A process's place among those that train together, as its launcher says.
struct Membership {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;  ///< processes on this machine
  std::string master_address;
  uint16_t master_port = 29500;
  bool launcher_serves_store = false;  ///< torchrun's agent does; otherwise rank 0
  std::string attempt;                 ///< tells apart the starts that meet in one store
};

/// Gives the value of an environment variable, or nothing.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// Reads the variables of torchrun (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT), else those of Open
/// MPI, else those of a Slurm job step. Nothing where no launcher has set any. Throws InputError that names
/// the variable that is missing or wrong.
std::optional<Membership> membership_of(const Environment& environment);

/// That of this process.
std::optional<Membership> membership_of_process();

}  // namespace strait
