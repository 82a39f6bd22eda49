#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "strait/transport/group.h"
#include "strait/transport/join_group.h"
#include "strait/transport/store_server.h"

namespace strait {

/// What is known of a rank whose connection to the store broke before any rank had left word.
inline constexpr const char* kGoneReason = "it ended without a word";

/// Where the ranks of a group find each other, and leave word when they end: keys in a store, which the
/// launcher or the first rank serves (StoreServer), or torchrun's agent (TCPStore).
class Rendezvous {
 public:
  /// Connects to the store, or serves it, and takes this rank's place; `waiting` hears that rank 0 is missing
  /// while the store does not answer. Throws InputError when the place is taken, Error when the store does not
  /// answer.
  Rendezvous(Membership membership, std::chrono::milliseconds timeout, const WaitingFor& waiting);

  const c10::intrusive_ptr<c10d::Store>& store() const { return store_; }

  /// What each rank said, once all have; `waiting` hears meanwhile who has not. Throws Error that names those
  /// that did not come in time.
  std::vector<std::string> exchange(const std::string& handshake, const WaitingFor& waiting);

  /// From now on a word counts only with its rank's token, which the ranks have told each other elsewhere than
  /// in the store. Before, a word cannot say that training diverged.
  void trust(std::vector<std::string> tokens) { tokens_ = std::move(tokens); }
  const std::vector<std::string>& tokens() const { return tokens_; }

  /// Leaves word of a failure; the first one counts. Never throws: it is the end anyway.
  void leave_word(const Failure& failure);

  /// The failure that a rank left word of, waiting a moment for it; nothing when there is none or the store
  /// does not answer any more.
  std::optional<Failure> word();

  /// On the rank that serves the store: waits a while until the others have left it, who may still read why.
  void linger();

 private:
  void open_store(const WaitingFor& waiting);
  void open_torchruns_store();
  std::string why_not_all(const std::vector<int>& missing);
  std::string to_text(const Failure& failure) const;
  std::optional<Failure> failure_of(const std::string& text) const;
  std::chrono::milliseconds limit(std::chrono::milliseconds usual) const;

  Membership membership_;
  std::chrono::milliseconds timeout_;
  std::unique_ptr<StoreServer> server_;  ///< on the rank that serves the store
  c10::intrusive_ptr<c10d::Store> store_;
  std::vector<std::string> tokens_;  ///< of each rank; empty until they are known
};

}  // namespace strait
