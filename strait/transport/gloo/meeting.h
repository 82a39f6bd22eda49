#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "strait/transport/group.h"
#include "strait/transport/membership.h"

namespace strait {

/// Where the ranks of a group find each other, and leave word when they end: keys in a TCPStore.
class Meeting {
 public:
  /// Connects to the store, or serves it on rank 0, and takes this rank's place. Throws InputError when that is
  /// taken, Error when the store does not answer.
  Meeting(Membership membership, std::chrono::milliseconds timeout);

  const c10::intrusive_ptr<c10d::Store>& store() const { return store_; }

  /// What each rank said, once all have. Throws Error that names those that did not come in time.
  std::vector<std::string> exchange(const std::string& hello);

  /// Leaves word of a failure; the first one counts. Never throws: it is the end anyway.
  void leave_word(const Failure& failure);

  /// The failure that a rank left word of, waiting a moment for it; nothing when there is none or the store
  /// does not answer any more.
  std::optional<Failure> word();

  /// On the rank that serves the store: waits a while until every rank has read the hellos and, where
  /// `after_failure`, has left word too.
  void linger(bool after_failure);

 private:
  void open_store();
  std::string place() const;
  std::chrono::milliseconds limit(std::chrono::milliseconds usual) const;

  Membership membership_;
  std::chrono::milliseconds timeout_;
  c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace strait
