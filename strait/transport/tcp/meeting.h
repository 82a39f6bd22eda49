#pragma once

#include <memory>
#include <string>

#include "strait/base/error.h"
#include "strait/transport/membership.h"
#include "strait/transport/tcp/address.h"
#include "strait/transport/tcp/tls.h"

namespace strait::tcp {

/// Where the ranks of a group meet, and what lets them in.
struct Meeting {
  Endpoint first;            ///< where rank 0 listens
  std::unique_ptr<Tls> tls;  ///< null: at sockets of the file system that only the user can open
  std::string folder;        ///< of these sockets
  int connections = 1;       ///< most between two ranks that speak over TLS

  /// Where a rank listens, of those that meet at such sockets.
  Endpoint at_path(int rank) const { return {.path = folder + "/" + std::to_string(rank)}; }
};

/// A rank's place in the folder of a meeting, which one process at a time has.
class RankPlace {
 public:
  /// Makes the folder where it is not there. Throws PlaceTaken when another process has the place, Error with
  /// the reason when nobody can have it.
  RankPlace(std::string folder, int rank);

  /// Leaves nothing behind: the last of the ranks takes the folder away too.
  ~RankPlace();
  RankPlace(const RankPlace&) = delete;
  RankPlace& operator=(const RankPlace&) = delete;

 private:
  std::string folder_;
  std::string path_;
  Socket lock_;  ///< a file that is locked
};

/// Another process has a rank's place.
class PlaceTaken : public Error {
  using Error::Error;
};

/// The folder in which ranks meet at that port, in that attempt; what is left there after they were killed may
/// be removed.
std::string folder_of(uint16_t port, const std::string& attempt);

/// Ranks of one machine meet in a folder of the file system that only their user can open: under
/// XDG_RUNTIME_DIR, or /tmp. Ranks of several, and those that have a secret, meet at the master's address, and
/// the secret lets them in. Throws InputError when several machines have no secret, Error for a folder that
/// others can open.
Meeting meeting_of(const Membership& membership);

}  // namespace strait::tcp
