#pragma once

#include <string>
#include <utility>
#include <vector>

#include "strait/base/error.h"

namespace strait {

/// What a process says of itself before it connects to the others.
struct Handshake {
  int processes = 1;       ///< in all
  std::string flags = {};  ///< of the command line, that all must have alike

  /// Keys and values that all must have alike, in an order that all have.
  std::vector<std::pair<std::string, std::string>> settings = {};

  /// As JSON, with the wire version and the code version besides.
  std::string text() const;
};

/// Compares the handshake of every rank, by rank, with that of `rank`. Throws Error that names one that
/// differs, and WireError for a handshake that is not what a process says.
void check_handshakes(int rank, const std::vector<std::string>& handshakes);

}  // namespace strait
