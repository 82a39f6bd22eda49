#include "strait/transport/tcp/listener.h"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

namespace strait::tcp {
namespace {

using namespace std::chrono_literals;

constexpr size_t kStrangers = 64;  // who have not said who they are; of more the first goes
constexpr auto kGreetingLimit = 5s;
constexpr int kAtOnce = 64;  // who are let in before the others of the loop have their turn

}  // namespace

Listener::Listener(EventLoop& loop, Socket socket, const Tls* tls, Greeted greeted)
    : loop_(loop),
      socket_(std::move(socket)),
      tls_(tls),
      greeted_(std::move(greeted)),
      watch_(loop.watch(socket_.descriptor())) {
  wait();
}

void Listener::wait() {
  watch_->when_readable([this] {
    accept_all();
    if (!is_full_) wait();
  });
}

void Listener::accept_all() {
  for (int i = 0; i < kAtOnce; ++i) {
    auto socket = accept_from(socket_);
    if (socket) {
      if (tls_ != nullptr || is_own_user(*socket)) greet(std::move(*socket));
    } else if (errno == EMFILE || errno == ENFILE) {
      is_full_ = strangers_.empty();
      if (is_full_) return;
      strangers_.pop_front();
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

void Listener::greet(Socket socket) {
  const std::string host = peer_address(socket).host();
  auto stream = tls_ == nullptr ? make_plain_stream(std::move(socket))
                                : tls_->make_stream(std::move(socket), Side::listener);
  take(std::make_shared<Connection>(loop_, std::move(stream)), host);
}

void Listener::take(std::shared_ptr<Connection> connection, const std::string& host) {
  if (strangers_.size() == kStrangers) strangers_.pop_front();
  const auto at = strangers_.insert(
      strangers_.end(),
      {.introduction = nullptr, .host = host, .late = std::chrono::steady_clock::now() + kGreetingLimit});
  at->introduction = std::make_shared<Introduction>(
      std::move(connection), Introduction::Events{.heard =
                                                      [this, at](const std::string& hello) {
                                                        auto who = at->introduction;
                                                        strangers_.erase(at);
                                                        greeted_(std::move(who), hello);
                                                      },
                                                  .failed =
                                                      [this, at](const std::string& reason, bool /*proved*/) {
                                                        if (reason != kConnectionClosed) {
                                                          last_refused_ =
                                                              fmt::format("from {}: {}", at->host, reason);
                                                        }
                                                        strangers_.erase(at);
                                                      }});
  // One whose introduction fails at once goes at once.
  const auto introduction = at->introduction;
  introduction->start();
}

void Listener::tick(std::chrono::steady_clock::time_point now) {
  while (!strangers_.empty() && strangers_.front().late <= now) strangers_.pop_front();
  if (std::exchange(is_full_, false)) wait();
}

}  // namespace strait::tcp
