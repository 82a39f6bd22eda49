#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace strait {

/// How messages go between two processes.
enum class Route {
  none,     ///< they have not spoken with each other, or what carries the messages does not tell
  local,    ///< over a socket of one machine's file system
  direct,   ///< over a connection between their machines
  relayed,  ///< through rank 0, because neither can reach the other
};

/// A time in which there was no connection to another process, where there had been one.
struct Outage {
  std::chrono::system_clock::time_point begin;  ///< when the connection was lost
  std::chrono::system_clock::time_point end;    ///< when there was one again
};

/// The way from one process to another.
struct LinkStatus {
  int peer = 0;                      ///< the other's rank
  Route route = Route::none;         ///< now, or when there was last a connection
  std::vector<Outage> outages = {};  ///< that are over
  std::string address = {};          ///< where the other listens, such as `10.0.0.2:40123`; empty: not known
  int connections = 1;               ///< that carry the messages side by side
};

}  // namespace strait
