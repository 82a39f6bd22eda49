#include "strait/transport/gloo/store_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "strait/base/error.h"
#include "strait/transport/c10d/failure_board.h"
#include "strait/transport/gloo/store_protocol.h"

namespace strait {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using namespace store;

constexpr milliseconds kWithoutDescriptors(50);  // between two looks when no connection can be taken

size_t strangers_of(const std::vector<StoreConnection>& connections) {
  return static_cast<size_t>(std::ranges::count_if(connections, [](const auto& one) { return !one.rank(); }));
}

}  // namespace

StoreServer::StoreServer(const std::string& host, uint16_t port, int ranks, std::string attempt, Limits limits)
    : limits_(limits),
      listener_(listen_at(host, port)),
      port_(port_of(listener_)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      admission_(ranks, std::move(attempt)),
      table_(limits.bytes) {
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
  std::vector<short> events;
  while (wait(events)) {
    for (size_t i = 0; i < events.size(); ++i) {
      if (events[i] != 0) serve_one(connections_[i], events[i]);
    }
    accept_all();
    drop_strangers();
    drop_closed();
  }
}

/// Waits until something is to be done, and says what at each connection; false when that is to end.
bool StoreServer::wait(std::vector<short>& events) {
  std::vector<pollfd> waits = {{wake_.descriptor(), POLLIN, 0},
                               {listener_.descriptor(), POLLIN, 0}};  // a negative one is left out
  auto next = steady_clock::time_point::max();
  for (const auto& one : connections_) {
    waits.push_back({one.descriptor(), one.events(), 0});
    if (!one.rank()) next = std::min(next, one.greet_by());
  }
  int limit = -1;
  if (next != steady_clock::time_point::max()) {
    limit = static_cast<int>(
        std::max<int64_t>(0, std::chrono::ceil<milliseconds>(next - steady_clock::now()).count()));
  }
  poll(waits.data(), waits.size(), limit);
  events.clear();
  for (size_t i = 2; i < waits.size(); ++i) events.push_back(waits[i].revents);
  return waits.front().revents == 0;
}

void StoreServer::serve_one(StoreConnection& connection, short events) {
  if ((events & POLLOUT) != 0) {
    connection.write();
  } else if (const auto message = connection.read()) {
    take(connection, *message);
  }
  const auto rank = connection.rank();
  if (connection.is_open() || !rank || table_.find(kGoneKey) != nullptr || table_.find(kFailureKey) != nullptr)
    return;
  table_.put(kGoneKey, std::to_string(*rank));
}

void StoreServer::take(StoreConnection& connection, const std::string& message) {
  if (connection.rank()) {
    take_request(connection, message);
  } else {
    take_greeting(connection, message);
  }
}

void StoreServer::take_greeting(StoreConnection& connection, const std::string& message) {
  if (!message.starts_with(kMagic)) return connection.close();
  const auto rank = number_at<uint32_t>(message, kMagic.size());
  const Answer answer = admission_.admit(rank, std::string_view(message).substr(kGreetingSize));
  if (answer == Answer::welcome) connection.let_in(static_cast<int>(rank));
  std::string reply(kMagic);
  put(reply, answer);
  connection.reply(reply);
}

void StoreServer::take_request(StoreConnection& connection, const std::string& message) {
  const size_t key_size = number_at<uint16_t>(message, 1);
  const std::string key = message.substr(kRequestSize, key_size);
  std::string value = message.substr(kRequestSize + key_size);
  const std::string* const found = table_.find(key);
  const bool had = found != nullptr;
  std::string reply;
  switch (static_cast<Operation>(message.front())) {
    case Operation::set:
      if (!table_.set(key, std::move(value))) return connection.close();
      break;
    case Operation::get:
      if (had) reply = *found;
      break;
    case Operation::has:
      break;
    case Operation::add: {
      if (value.size() != sizeof(uint64_t)) return connection.close();
      const auto sum = table_.add(key, number_at<uint64_t>(value, 0));
      if (!sum) return connection.close();
      put(reply, *sum);
      break;
    }
    case Operation::leave:
      return connection.leave();
    default:
      return connection.close();
  }
  std::string bytes;
  put(bytes, static_cast<uint8_t>(had));
  put(bytes, static_cast<uint32_t>(reply.size()));
  connection.reply(bytes + reply);
}

void StoreServer::accept_all() {
  while (listener_) {
    auto socket = accept_from(listener_);
    if (socket) {
      connections_.emplace_back(std::move(*socket), steady_clock::now() + limits_.greeting);
      if (strangers_of(connections_) > limits_.strangers) drop_oldest_stranger();
    } else if (errno == EMFILE || errno == ENFILE) {
      if (strangers_of(connections_) == 0) return std::this_thread::sleep_for(kWithoutDescriptors);
      drop_oldest_stranger();
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

void StoreServer::drop_oldest_stranger() {
  connections_.erase(std::ranges::find_if(connections_, [](const auto& one) { return !one.rank(); }));
}

/// Those who are late, or all when nobody is missing.
void StoreServer::drop_strangers() {
  const bool complete = admission_.is_complete();
  if (complete) listener_ = Socket();
  const auto now = steady_clock::now();
  std::erase_if(connections_,
                [&](const auto& one) { return !one.rank() && (complete || one.greet_by() <= now); });
}

void StoreServer::drop_closed() {
  std::erase_if(connections_, [](const auto& one) { return !one.is_open(); });
  present_.set(connections_.size() - strangers_of(connections_));
}

}  // namespace strait
