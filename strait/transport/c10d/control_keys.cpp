#include "strait/transport/c10d/control_keys.h"

#include <fmt/format.h>

#include <sstream>

#include "strait/transport/c10d/store_call.h"

namespace strait {

using store::bytes_of;
using store::text_of;

ControlKeys::ControlKeys(const FailureBoard& board, int rank, int number)
    : store_(board.store()),
      tokens_(board.tokens()),
      rank_(rank),
      prefix_(fmt::format("control/{}/", number)) {}

std::string ControlKeys::key(const char* kind, int rank, int64_t index) const {
  return fmt::format("{}{}/{}/{}", prefix_, kind, rank, index);
}

int64_t ControlKeys::send(int to, const ControlMessage& message) const {
  const int64_t index = store_->add(fmt::format("{}count/{}", prefix_, to), 1) - 1;
  store_->set(key("to", to, index),
              bytes_of(fmt::format("{} {} {} {}", tokens_[static_cast<size_t>(rank_)], rank_,
                                   static_cast<uint32_t>(message.kind), message.number)));
  return index;
}

bool ControlKeys::has(int64_t index) const { return store_->check({key("to", rank_, index)}); }

std::optional<ControlMessage> ControlKeys::message(int64_t index) const {
  std::istringstream in(text_of(store_->get(key("to", rank_, index))));
  std::string token;
  size_t from = 0;
  uint32_t kind = 0;
  uint64_t number = 0;
  if (!(in >> token >> from >> kind >> number) || from >= tokens_.size() || token != tokens_[from]) {
    return std::nullopt;
  }
  return ControlMessage{static_cast<ControlKind>(kind), number};
}

void ControlKeys::confirm(int64_t index) const {
  store_->set(key("heard", rank_, index), bytes_of(tokens_[static_cast<size_t>(rank_)]));
}

bool ControlKeys::is_confirmed(int rank, int64_t index) const {
  const std::string heard = key("heard", rank, index);
  return store_->check({heard}) && text_of(store_->get(heard)) == tokens_[static_cast<size_t>(rank)];
}

}  // namespace strait
