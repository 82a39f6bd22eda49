#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "strait/transport/gloo/rendezvous.h"

namespace strait {

/// A rank's connections to all others, over Gloo. Threads may share it.
class Connections {
 public:
  /// Connects through the rendezvous's store. Throws Error when that fails.
  Connections(const Membership& membership, std::chrono::milliseconds timeout,
              std::unique_ptr<Rendezvous> rendezvous);
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  int rank() const { return rank_; }
  c10d::ProcessGroupGloo& gloo() const;

  /// Begin an operation, and wait for it. When that fails, throw an Error that says `where`, which peer (-1:
  /// any) and why, which may be what a rank left word of; NumericError where training diverged there.
  void begin(const std::string& where, int peer, const std::function<void()>& operation) const;
  void wait(const std::string& where, int peer, c10d::Work& work) const;

  /// What this rank tells the others, over these connections, that its words can be known by; see
  /// Rendezvous::trust().
  const std::string& token() const { return token_; }
  void trust(std::vector<std::string> tokens) { rendezvous_->trust(std::move(tokens)); }
  const std::vector<std::string>& tokens() const { return rendezvous_->tokens(); }

  /// The store in which the ranks have met.
  const c10::intrusive_ptr<c10d::Store>& store() const { return rendezvous_->store(); }

  /// How long a wait may take.
  std::chrono::milliseconds patience() const;

  /// Throws what wait() does, for the reason in the message where no rank has left word of another.
  [[noreturn]] void explain(const std::string& where, int peer, const std::string& message) const;

  /// Leaves word and closes all connections, which ends every wait on this rank and on its peers.
  void fail(const Failure& failure);

 private:
  class Gloo;

  int rank_;
  std::string token_;
  std::chrono::milliseconds timeout_;
  std::unique_ptr<Rendezvous> rendezvous_;
  c10::intrusive_ptr<Gloo> gloo_;
};

}  // namespace strait
