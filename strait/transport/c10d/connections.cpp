#include "strait/transport/c10d/connections.h"

#include "strait/base/error.h"

namespace strait {

Connections::Connections(c10::intrusive_ptr<C10dBackend> backend, std::shared_ptr<FailureBoard> board)
    : backend_(std::move(backend)), board_(std::move(board)) {}

void Connections::begin(const std::string& where, int peer, const std::function<void()>& operation) const {
  try {
    operation();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    explain(where, peer, error.what());
  }
}

void Connections::wait(const std::string& where, int peer, c10d::Work& work) const {
  begin(where, peer, [&] {
    const Waits::Guard guard(*waits_, work);
    if (work.wait(patience())) return;
    if (waits_->ended()) explain(where, peer, "");
    throw Error("{}: given up", where);
  });
}

void Connections::explain(const std::string& where, int peer, const std::string& message) const {
  const auto reason = waits_->ended();
  if (!reason) board_->explain(where, peer, message);
  board_->throw_word(where, peer);
  throw Error("{}: {}", where, *reason);
}

void Connections::fail(const Failure& failure) {
  board_->leave(failure);
  waits_->end(kGivenUp);
  break_off(failure);
}

}  // namespace strait
