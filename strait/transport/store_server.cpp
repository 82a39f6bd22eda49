#include "strait/transport/store_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "strait/base/error.h"
#include "strait/transport/store_protocol.h"

namespace strait {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using namespace store;

constexpr size_t kReadSize = 1 << 16;
constexpr milliseconds kWithoutDescriptors(50);  // between two looks when no connection can be taken

}  // namespace

StoreServer::StoreServer(const std::string& host, uint16_t port, int ranks, std::string attempt, Limits limits)
    : attempt_(std::move(attempt)),
      limits_(limits),
      listener_(listen_at(host, port)),
      port_(port_of(listener_)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      came_(static_cast<size_t>(ranks)),
      missing_(came_.size()) {
  if (!wake_) throw Error("{}", std::strerror(errno));
  thread_ = std::thread([this] { serve(); });
}

StoreServer::~StoreServer() {
  const uint64_t one = 1;
  // Fails only where the thread has been woken already.
  [[maybe_unused]] const ssize_t written = ::write(wake_.descriptor(), &one, sizeof(one));
  thread_.join();
}

void StoreServer::serve() {
  while (wait() >= 0) {
    for (size_t i = 0; i < events_.size(); ++i) {
      if (events_[i] != 0) move_bytes(connections_[i], events_[i]);
    }
    accept_all();
    drop_strangers();
    drop_closed();
  }
}

/// Waits until something is to be done; -1 when that is to end.
int StoreServer::wait() {
  std::vector<pollfd> waits = {{wake_.descriptor(), POLLIN, 0},
                               {listener_.descriptor(), POLLIN, 0}};  // a negative one is left out
  auto next = steady_clock::time_point::max();
  for (const auto& one : connections_) {
    waits.push_back({one.socket.descriptor(), static_cast<short>(one.out.empty() ? POLLIN : POLLOUT), 0});
    if (one.rank < 0) next = std::min(next, one.greeted_by);
  }
  int limit = -1;
  if (next != steady_clock::time_point::max()) {
    limit = static_cast<int>(
        std::max<int64_t>(0, std::chrono::ceil<milliseconds>(next - steady_clock::now()).count()));
  }
  poll(waits.data(), waits.size(), limit);
  events_.clear();
  for (size_t i = 2; i < waits.size(); ++i) events_.push_back(waits[i].revents);
  return waits.front().revents != 0 ? -1 : 0;
}

size_t StoreServer::strangers() const {
  return static_cast<size_t>(std::ranges::count_if(connections_, [](const auto& one) { return one.rank < 0; }));
}

void StoreServer::accept_all() {
  while (listener_) {
    auto socket = accept_from(listener_);
    if (socket) {
      connections_.push_back(
          {.socket = std::move(*socket), .greeted_by = steady_clock::now() + limits_.greeting});
      if (strangers() > limits_.strangers) drop_oldest_stranger();
    } else if (errno == EMFILE || errno == ENFILE) {
      if (strangers() == 0) return std::this_thread::sleep_for(kWithoutDescriptors);
      drop_oldest_stranger();
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

void StoreServer::drop_oldest_stranger() {
  connections_.erase(std::ranges::find_if(connections_, [](const auto& one) { return one.rank < 0; }));
}

/// Those who are late, or all when nobody is missing.
void StoreServer::drop_strangers() {
  if (missing_ == 0) listener_ = Socket();
  const auto now = steady_clock::now();
  std::erase_if(connections_,
                [&](const auto& one) { return one.rank < 0 && (missing_ == 0 || one.greeted_by <= now); });
}

void StoreServer::drop_closed() {
  std::erase_if(connections_, [](const auto& one) { return !one.open; });
  const std::scoped_lock lock(mutex_);
  present_ = connections_.size() - strangers();
  changed_.notify_all();
}

void StoreServer::wait_until_left(milliseconds limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [&] { return present_ <= 1; });
}

void StoreServer::move_bytes(Connection& connection, short events) {
  if ((events & POLLOUT) != 0) {
    write(connection);
  } else {
    read(connection);
  }
  if (connection.open || connection.rank < 0 || values_.contains(kGoneKey) || values_.contains(kFailureKey))
    return;
  values_[kGoneKey] = std::to_string(connection.rank);
}

/// Bytes that the greeting or request has as far as it is known.
size_t StoreServer::wanted(const Connection& connection) const {
  const std::string& in = connection.in;
  if (connection.rank < 0) {
    if (in.size() < kGreetingSize) return kGreetingSize;
    return kGreetingSize + number_at<uint16_t>(in, kGreetingSize - sizeof(uint16_t));
  }
  if (in.size() < kRequestSize) return kRequestSize;
  return kRequestSize + number_at<uint16_t>(in, 1) + number_at<uint32_t>(in, 3);
}

void StoreServer::read(Connection& connection) {
  std::array<char, kReadSize> space;
  const size_t bound = connection.rank < 0 ? kGreetingSize + kMaxAttempt : kMaxRequest;
  while (connection.open && connection.out.empty()) {
    const size_t missing = wanted(connection) - connection.in.size();
    const ssize_t got = recv(connection.socket.descriptor(), space.data(), std::min(missing, space.size()), 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    connection.open = got > 0;
    if (got <= 0) return;
    connection.in.append(space.data(), static_cast<size_t>(got));
    if (wanted(connection) > bound) {
      connection.open = false;
    } else if (connection.in.size() == wanted(connection)) {
      if (connection.rank < 0) {
        take_greeting(connection);
      } else {
        take_request(connection);
      }
      connection.in.clear();
      return write(connection);
    }
  }
}

void StoreServer::write(Connection& connection) {
  if (connection.out.empty()) return;
  const ssize_t sent =
      send(connection.socket.descriptor(), connection.out.data(), connection.out.size(), MSG_NOSIGNAL);
  if (sent > 0) {
    connection.out.erase(0, static_cast<size_t>(sent));
  } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
    connection.open = false;
  }
}

void StoreServer::take_greeting(Connection& connection) {
  const std::string& in = connection.in;
  if (!in.starts_with(kMagic)) {
    connection.open = false;
    return;
  }
  const auto rank = number_at<uint32_t>(in, kMagic.size());
  Answer answer = Answer::welcome;
  if (in.substr(kGreetingSize) != attempt_) {
    answer = Answer::other_attempt;
  } else if (rank >= came_.size()) {
    answer = Answer::no_such_rank;
  } else if (came_[rank]) {
    answer = Answer::taken;
  } else {
    came_[rank] = true;
    missing_ -= 1;
    connection.rank = static_cast<int>(rank);
  }
  connection.out = kMagic;
  put(connection.out, answer);
}

void StoreServer::take_request(Connection& connection) {
  const std::string& in = connection.in;
  const size_t key_size = number_at<uint16_t>(in, 1);
  const std::string key = in.substr(kRequestSize, key_size);
  std::string value = in.substr(kRequestSize + key_size);
  const auto found = values_.find(key);
  const bool had = found != values_.end();
  std::string reply;
  switch (static_cast<Operation>(in.front())) {
    case Operation::set:
      set(key, std::move(value), connection);
      break;
    case Operation::get:
      if (had) reply = found->second;
      break;
    case Operation::has:
      break;
    case Operation::add: {
      if (value.size() != sizeof(int64_t) || (had && found->second.size() != sizeof(int64_t))) {
        connection.open = false;
        break;
      }
      const uint64_t before = had ? number_at<uint64_t>(found->second, 0) : 0;
      put(reply, before + number_at<uint64_t>(value, 0));
      set(key, reply, connection);
      break;
    }
    case Operation::leave:
      connection.rank = -1;  // in order: nobody need hear of it
      connection.open = false;
      break;
    default:
      connection.open = false;
  }
  if (!connection.open) return;
  put(connection.out, static_cast<uint8_t>(had));
  put(connection.out, static_cast<uint32_t>(reply.size()));
  connection.out += reply;
}

void StoreServer::set(const std::string& key, std::string value, Connection& connection) {
  const auto found = values_.find(key);
  const size_t before = found == values_.end() ? 0 : key.size() + found->second.size();
  const size_t after = key.size() + value.size();
  if (bytes_ - before + after > limits_.bytes) {
    connection.open = false;
    return;
  }
  bytes_ += after - before;
  values_[key] = std::move(value);
}

}  // namespace strait
