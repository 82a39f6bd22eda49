#include "strait/transport/gloo/store_client.h"

#include <algorithm>
#include <array>
#include <thread>

#include "strait/base/error.h"
#include "strait/transport/gloo/store_protocol.h"
#include "strait/transport/join_group.h"

namespace strait {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using namespace store;

constexpr milliseconds kBetweenTries(20);

std::string request(Operation operation, std::string_view key, std::string_view value) {
  std::string bytes;
  put(bytes, operation);
  put(bytes, static_cast<uint16_t>(key.size()));
  put(bytes, static_cast<uint32_t>(value.size()));
  bytes.append(key).append(value);
  STRAIT_CHECK(bytes.size() <= kMaxRequest, "the store takes no {} bytes at once", bytes.size());
  return bytes;
}

}  // namespace

StoreClient::StoreClient(const Membership& membership, milliseconds timeout,
                         const std::function<void()>& waiting)
    : timeout_(timeout) {
  const Deadline deadline = steady_clock::now() + timeout;
  Reaction last = Reaction::none;
  while (true) {
    const Reaction reaction = greet(membership, deadline);
    if (reaction == Reaction::welcome) return;
    last = std::max(last, reaction);
    if (steady_clock::now() + kBetweenTries >= deadline) break;
    std::this_thread::sleep_for(kBetweenTries);
    waiting();
  }
  if (last == Reaction::foreign) {
    throw Error("rank {}: what listens at {} does not answer as rank 0 would", membership.rank,
                membership.rendezvous_endpoint());
  }
  throw Error("rank {}: nothing answers at {}, where rank 0 should be, for {} s", membership.rank,
              membership.rendezvous_endpoint(), timeout.count() / 1000);
}

StoreClient::Reaction StoreClient::greet(const Membership& membership, Deadline deadline) {
  auto socket = connect_to(membership.master_address, membership.master_port, deadline);
  if (!socket) return Reaction::none;
  std::string greeting(kMagic);
  put(greeting, static_cast<uint32_t>(membership.rank));
  put(greeting, static_cast<uint16_t>(membership.attempt.size()));
  greeting += membership.attempt;
  std::array<char, kAnswerSize> answer{};
  if (!send_all(*socket, greeting, deadline) || !receive_all(*socket, answer, deadline) ||
      !std::string_view(answer.data(), answer.size()).starts_with(kMagic)) {
    return Reaction::foreign;
  }
  switch (number_at<Answer>({answer.data(), answer.size()}, kMagic.size())) {
    case Answer::welcome:
      socket_ = std::move(socket);
      return Reaction::welcome;
    case Answer::taken:
      throw RankTaken(membership);
    case Answer::other_attempt:
      throw Error("rank {}: another training meets at {}; use another port, or wait for its end",
                  membership.rank, membership.rendezvous_endpoint());
    case Answer::no_such_rank:
      throw Error("rank {}: the group at {} has fewer ranks", membership.rank,
                  membership.rendezvous_endpoint());
  }
  return Reaction::foreign;
}

StoreClient::~StoreClient() {
  if (socket_) send_all(*socket_, request(Operation::leave, {}, {}), steady_clock::now());
}

StoreClient::Reply StoreClient::ask(Operation operation, std::string_view key, std::string_view value) {
  const std::scoped_lock lock(mutex_);
  const Deadline deadline = steady_clock::now() + timeout_;
  std::array<char, kReplySize> head{};
  if (socket_ && send_all(*socket_, request(operation, key, value), deadline) &&
      receive_all(*socket_, head, deadline)) {
    const auto size = number_at<uint32_t>({head.data(), head.size()}, 1);
    Reply reply{head.front() != 0, std::string(std::min<size_t>(size, kMaxRequest), '\0')};
    if (size <= kMaxRequest && receive_all(*socket_, reply.value, deadline)) return reply;
  }
  socket_.reset();
  throw Error("the store does not answer");
}

void StoreClient::set(std::string_view key, std::string_view value) { ask(Operation::set, key, value); }

std::optional<std::string> StoreClient::get(std::string_view key) {
  Reply reply = ask(Operation::get, key);
  if (!reply.found) return std::nullopt;
  return std::move(reply.value);
}

bool StoreClient::has(std::string_view key) { return ask(Operation::has, key).found; }

int64_t StoreClient::add(std::string_view key, int64_t number) {
  const Reply reply = ask(Operation::add, key, {reinterpret_cast<const char*>(&number), sizeof(number)});
  if (reply.value.size() != sizeof(int64_t)) throw Error("the store does not answer as it should");
  return number_at<int64_t>(reply.value, 0);
}

}  // namespace strait
