#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "strait/transport/c10d/failure_board.h"
#include "strait/transport/control.h"

namespace strait {

/// The messages of a control channel as keys of the store. Those to rank R lie under `to/R/0`, `to/R/1` and so
/// on, as `TOKEN RANK KIND NUMBER` of their sender; R leaves its token under `heard/R/0` and so on. The tokens
/// are those that the board trusts: torchrun's store takes what anybody writes. All members throw what the
/// store does.
class ControlKeys {
 public:
  /// `number` tells apart the channels that the ranks make one after another.
  ControlKeys(const FailureBoard& board, int rank, int number);

  /// Sends a message; gives its index among those to that rank.
  int64_t send(int to, const ControlMessage& message) const;

  /// Whether there is a message of that index to this rank.
  bool has(int64_t index) const;

  /// That message; nothing where it is none that a rank sends.
  std::optional<ControlMessage> message(int64_t index) const;

  /// Says that this rank has taken that message in.
  void confirm(int64_t index) const;

  /// Whether another rank has taken in the message to it of that index.
  bool is_confirmed(int rank, int64_t index) const;

 private:
  std::string key(const char* kind, int rank, int64_t index) const;

  c10::intrusive_ptr<c10d::Store> store_;
  std::vector<std::string> tokens_;
  int rank_;
  std::string prefix_;
};

}  // namespace strait
