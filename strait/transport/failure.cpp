#include "strait/transport/failure.h"

#include "strait/base/error.h"

namespace strait {

std::string name_of_rank(int rank) { return rank < 0 ? "another rank" : fmt::format("rank {}", rank); }

void throw_failure(const Failure& failure, const std::string& where, int peer) {
  if (failure.diverged) throw NumericError("rank {}: {}", failure.rank, failure.reason);
  if (failure.rank == peer && failure.reason == kGoneReason)
    throw PeerError("{}: {} is gone: {}", where, name_of_rank(peer), kGoneReason);
  const std::string first = fmt::format("rank {}", failure.rank);
  throw PeerError("{}: {} is gone; the first to fail was {}", where, name_of_rank(peer),
                  failure.reason.starts_with(first) ? failure.reason : first + ": " + failure.reason);
}

void throw_silence(const std::string& where, int peer, std::chrono::milliseconds timeout) {
  throw PeerError("{}: {} was silent for the timeout of {} s", where, name_of_rank(peer),
                  timeout.count() / 1000);
}

}  // namespace strait
