#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "strait/transport/c10d/backend.h"
#include "strait/transport/c10d/failure_board.h"
#include "strait/transport/c10d/waits.h"
#include "strait/transport/failure.h"

namespace strait {

/// A rank's connections to all others through a c10d backend, which must be Gloo: a receive may be larger than
/// its message, tags are matched in any order, and Work::abort() ends a wait. Threads may share it.
class Connections {
 public:
  /// The board's timeout bounds every wait.
  Connections(c10::intrusive_ptr<C10dBackend> backend, std::shared_ptr<FailureBoard> board);
  virtual ~Connections() = default;
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  int rank() const { return backend_->getRank(); }
  int size() const { return backend_->getSize(); }
  C10dBackend& backend() const { return *backend_; }
  FailureBoard& board() const { return *board_; }

  /// For a thread that may be left behind.
  const std::shared_ptr<FailureBoard>& shared_board() const { return board_; }

  /// Begin an operation, and wait for it. When that fails, throw what explain() does.
  void begin(const std::string& where, int peer, const std::function<void()>& operation) const;
  void wait(const std::string& where, int peer, c10d::Work& work) const;

  /// How long a wait may take.
  std::chrono::milliseconds patience() const { return part_to_wait(board_->timeout()); }

  /// Throws what FailureBoard::explain() does, or Error that this rank has failed itself.
  [[noreturn]] void explain(const std::string& where, int peer, const std::string& message) const;

  /// From any thread: leaves word and ends every wait on this rank and on its peers, those to come too.
  void fail(const Failure& failure);

 protected:
  /// Called by fail() once word is left: ends the waits of the peers.
  virtual void break_off(const Failure& failure) = 0;

  const std::shared_ptr<Waits>& waits() const { return waits_; }

 private:
  c10::intrusive_ptr<C10dBackend> backend_;
  std::shared_ptr<FailureBoard> board_;
  std::shared_ptr<Waits> waits_ = std::make_shared<Waits>();
};

}  // namespace strait
