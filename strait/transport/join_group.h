#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "strait/transport/group.h"
#include "strait/transport/membership.h"

namespace strait {

/// Called with what every rank said of itself, in the order of ranks, before they connect to each other; throws
/// when they do not belong together.
using CheckHandshakes = std::function<void(const std::vector<std::string>& handshakes)>;

/// A person has stopped the process before all had come.
class StoppedWaiting : public Error {
  using Error::Error;
};

/// Called now and then while ranks are missing, with these; at least one. Throws StoppedWaiting to end the
/// wait.
using WaitingFor = std::function<void(const std::vector<int>& missing)>;

/// Another process has this one's rank.
class RankTaken : public InputError {
 public:
  /// `membership`: this process's.
  explicit RankTaken(const Membership& membership)
      : InputError("rank {}: another process has taken this rank of the group at {}", membership.rank,
                   membership.rendezvous_endpoint()) {}
};

/// What carries everything between processes.
enum class Carrier {
  tcp,   ///< strait's own connections: join_tcp_group()
  c10d,  ///< LibTorch's Gloo, neither encrypted nor authenticated: join_c10d_group()
};

/// Most connections between two processes.
inline constexpr int kMostConnections = 64;

/// How a carrier carries.
struct Carriage {
  /// Over one connection between two processes where nothing else is said.
  Carriage(Carrier by, int over = 1) : carrier(by), connections(over) {}

  Carrier carrier;  ///< which

  /// Between two processes of different machines, from 1 to kMostConnections; for Carrier::tcp alone. Where two
  /// processes say different numbers, they make the smaller one; those that speak through rank 0 make one.
  int connections;
};

/// Joins the group of the membership: meets the others at the master's address, lets them see `handshake`,
/// checks theirs, and connects to them. `timeout` bounds every later wait, and this one too, unless `patience`
/// is longer (for Carrier::tcp alone).
///
/// Throws RankTaken when another process has taken this rank, InputError when this one has no secret where it
/// needs one or another one, or where the carriage has another number of connections than it may, PeerError
/// when one is lost meanwhile, Error that names the missing ranks or the address that does not answer, and what
/// `check` throws.
std::unique_ptr<Group> join_group(const Carriage& carriage, const Membership& membership,
                                  std::chrono::milliseconds timeout, const std::string& handshake,
                                  const CheckHandshakes& check, const WaitingFor& waiting,
                                  std::chrono::milliseconds patience = {});

/// How join_from_environment() joins.
struct JoinOptions {
  std::chrono::milliseconds timeout = std::chrono::seconds(60);  ///< of every wait for another process

  /// Keys and values that all processes must have alike, such as a seed or a batch size. A process that differs
  /// is refused by name.
  std::vector<std::pair<std::string, std::string>> settings = {};
  WaitingFor waiting = {};           ///< may be empty
  Carriage carriage = Carrier::tcp;  ///< between the processes
};

/// The processes that a launcher started together, as the environment says: torchrun's variables (RANK,
/// WORLD_SIZE, MASTER_ADDR, MASTER_PORT), `strait launch`'s, Open MPI's or Slurm's; one process where none are
/// set. The processes shake hands: they must have the same wire version, code version and settings. Throws
/// InputError that names a variable that is wrong, and what join_group() throws.
std::shared_ptr<Group> join_from_environment(const JoinOptions& options = {});

}  // namespace strait
