#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "strait/transport/c10d/failure_board.h"
#include "strait/transport/gloo/store_server.h"
#include "strait/transport/join_group.h"

namespace strait {

/// Where the ranks of a group find each other: keys in a store, which the launcher or the first rank serves
/// (StoreServer), or torchrun's agent (TCPStore).
class Rendezvous {
 public:
  /// Connects to the store, or serves it, and takes this rank's place; `waiting` hears that rank 0 is missing
  /// while the store does not answer. Throws RankTaken when the place is taken, Error when the store does not
  /// answer.
  Rendezvous(Membership membership, std::chrono::milliseconds timeout, const WaitingFor& waiting);

  /// In the same store.
  const std::shared_ptr<FailureBoard>& board() const { return board_; }

  /// What each rank said, once all have; `waiting` hears meanwhile who has not. Throws Error that names those
  /// that did not come in time.
  std::vector<std::string> exchange(const std::string& handshake, const WaitingFor& waiting);

  /// On the rank that serves the store: waits a while until the others have left it, who may still read why.
  void linger();

 private:
  c10::intrusive_ptr<c10d::Store> open_store(const WaitingFor& waiting);
  std::string why_not_all(const std::vector<int>& missing);

  Membership membership_;
  std::chrono::milliseconds timeout_;
  std::unique_ptr<StoreServer> server_;  ///< on the rank that serves the store
  std::shared_ptr<FailureBoard> board_;
};

}  // namespace strait
