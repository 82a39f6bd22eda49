#pragma once

#include <chrono>
#include <list>
#include <memory>

#include "strait/transport/tcp/introduction.h"

namespace strait::tcp {

/// Brings together ranks of which neither can reach the other: both connect to rank 0, which passes on what
/// comes from either. It reads what it passes on, and keeps no more than a little of it when a side is slow.
/// All members are for the loop's thread.
class Relay {
 public:
  /// Somebody has connected as rank `from` to speak with rank `to`, and is to hear `reply` once the other has
  /// too. False: the other is not there yet.
  bool bring(std::shared_ptr<Introduction> who, int from, int to, const std::string& reply);

  /// To be called a few times a second: drops those whose other side does not come.
  void tick(std::chrono::steady_clock::time_point now);

 private:
  class Splice;
  struct Waiting {
    std::shared_ptr<Introduction> who;
    int from;
    int to;
    std::chrono::steady_clock::time_point late;
  };
  std::list<Waiting> waiting_;
  std::list<std::shared_ptr<Splice>> splices_;
};

}  // namespace strait::tcp
