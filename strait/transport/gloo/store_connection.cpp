#include "strait/transport/gloo/store_connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "strait/transport/gloo/store_protocol.h"
#include "strait/transport/membership.h"

namespace strait {
namespace {

using namespace store;

constexpr size_t kReadSize = 1 << 16;

/// Whether the last call only found nothing to do for now.
bool is_for_now() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

short StoreConnection::events() const { return static_cast<short>(out_.empty() ? POLLIN : POLLOUT); }

/// Bytes that the message has as far as it is known.
size_t StoreConnection::wanted() const {
  if (!rank_) {
    if (in_.size() < kGreetingSize) return kGreetingSize;
    return kGreetingSize + number_at<uint16_t>(in_, kGreetingSize - sizeof(uint16_t));
  }
  if (in_.size() < kRequestSize) return kRequestSize;
  return kRequestSize + number_at<uint16_t>(in_, 1) + number_at<uint32_t>(in_, 3);
}

std::optional<std::string> StoreConnection::read() {
  std::array<char, kReadSize> space;
  const size_t bound = rank_ ? kMaxRequest : kGreetingSize + kMaxAttempt;
  while (open_ && out_.empty()) {
    const size_t missing = wanted() - in_.size();
    const ssize_t got = recv(socket_.descriptor(), space.data(), std::min(missing, space.size()), 0);
    if (got < 0 && is_for_now()) break;
    if (got > 0) in_.append(space.data(), static_cast<size_t>(got));
    open_ = got > 0 && wanted() <= bound;
    if (open_ && in_.size() == wanted()) return std::exchange(in_, {});
  }
  return std::nullopt;
}

void StoreConnection::reply(const std::string& bytes) {
  out_ += bytes;
  write();
}

void StoreConnection::write() {
  if (out_.empty()) return;
  const ssize_t sent = send(socket_.descriptor(), out_.data(), out_.size(), MSG_NOSIGNAL);
  if (sent > 0) {
    out_.erase(0, static_cast<size_t>(sent));
  } else if (!is_for_now()) {
    open_ = false;
  }
}

}  // namespace strait
