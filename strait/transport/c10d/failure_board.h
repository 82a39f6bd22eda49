#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "strait/transport/group.h"

namespace strait {

/// The key under which the first rank that fails says why.
inline constexpr const char* kFailureKey = "failure";

/// The key under which a store that notices it (StoreServer) says whose connection broke without leave before a
/// rank failed.
inline constexpr const char* kGoneKey = "gone";

/// Where the ranks of a group leave word when they end: keys in their store. Threads may share it once the
/// tokens are known.
class FailureBoard {
 public:
  /// `timeout` is that of the group; leaving and reading a word take a small part of it.
  FailureBoard(c10::intrusive_ptr<c10d::Store> store, int rank, int ranks, std::chrono::milliseconds timeout);

  const c10::intrusive_ptr<c10d::Store>& store() const { return store_; }

  /// From now on a word counts only with its rank's token, which the ranks have told each other elsewhere than
  /// in the store. Before, a word cannot say that training diverged.
  void trust(std::vector<std::string> tokens) { tokens_ = std::move(tokens); }
  const std::vector<std::string>& tokens() const { return tokens_; }

  /// Leaves word of a failure; the first one counts. Never throws: it is the end anyway.
  void leave(const Failure& failure) const;

  /// The failure that a rank left word of, waiting a moment for it; nothing when there is none or the store
  /// does not answer any more.
  std::optional<Failure> read() const;

  /// Whether a rank has left word, or is known to be gone. Throws what the store does.
  bool has_word() const;

  /// Throws for a wait that has ended, where another rank has left word: Error that says `where`, which peer
  /// was waited for (-1: any) and which rank failed first; NumericError where training diverged there.
  void throw_word(const std::string& where, int peer) const;

  /// The same; where there is no word, throws Error for the reason in the message of LibTorch.
  [[noreturn]] void explain(const std::string& where, int peer, const std::string& message) const;

  std::chrono::milliseconds timeout() const { return timeout_; }

 private:
  std::string to_text(const Failure& failure) const;
  std::optional<Failure> failure_of(const std::string& text) const;

  c10::intrusive_ptr<c10d::Store> store_;
  int rank_;
  int ranks_;
  std::chrono::milliseconds timeout_;
  std::vector<std::string> tokens_;  ///< of each rank; empty until they are known
};

}  // namespace strait
