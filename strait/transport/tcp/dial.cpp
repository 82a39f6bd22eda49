#include "strait/transport/tcp/dial.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace strait::tcp {
namespace {

using namespace std::chrono_literals;

constexpr auto kConnectLimit = 2s;  // for one of several addresses, of which some may not answer
constexpr auto kIntroductionLimit = 5s;

Obstacle obstacle_of(int error) {
  return error == ECONNREFUSED || error == ENOENT ? Obstacle::refused : Obstacle::unreachable;
}

}  // namespace

Dial::Dial(EventLoop& loop, const Tls* tls, Endpoint endpoint, std::string hello, Events events)
    : loop_(loop),
      tls_(tls),
      endpoint_(std::move(endpoint)),
      hello_(std::move(hello)),
      events_(std::move(events)) {}

void Dial::start() {
  if (endpoint_.is_local()) {
    addresses_ = {local_address(endpoint_.path)};
    return try_next();
  }
  loop_.resolve(endpoint_.host, endpoint_.port, [weak = weak_from_this()](const auto& addresses) {
    const auto self = weak.lock();
    if (!self) return;
    if (addresses.empty()) return self->next_or_fail(Obstacle::unknown);
    self->addresses_.assign(addresses.rbegin(), addresses.rend());
    self->try_next();
  });
}

void Dial::try_next() {
  const SocketAddress address = addresses_.back();
  addresses_.pop_back();
  give_up_ = std::chrono::steady_clock::now() + kConnectLimit;
  socket_ = begin_connect(address);
  if (!socket_) return next_or_fail(obstacle_of(errno));
  watch_ = loop_.watch(socket_.descriptor());
  watch_->when_writable([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->connected();
  });
}

void Dial::connected() {
  watch_.reset();
  const int error = connect_result(socket_);
  if (error != 0) return next_or_fail(obstacle_of(error));
  auto stream = tls_ == nullptr ? make_plain_stream(std::move(socket_))
                                : tls_->make_stream(std::move(socket_), Side::dialer);
  start_over(std::make_shared<Connection>(loop_, std::move(stream)));
}

void Dial::start_over(std::shared_ptr<Connection> connection) {
  give_up_ = std::chrono::steady_clock::now() + kIntroductionLimit;
  const auto self = shared_from_this();  // its events may end it
  if (hello_.empty()) return events_.answered(std::move(connection), "");
  introduction_ = std::make_unique<Introduction>(
      std::move(connection),
      Introduction::Events{.heard =
                               [this](const std::string& reply) {
                                 give_up_ = std::chrono::steady_clock::time_point::max();
                                 const auto introduction = std::move(introduction_);
                                 events_.answered(introduction->release(), reply);
                               },
                           .failed =
                               [this](const std::string& reason, bool proved) {
                                 // A process that serves something else breaks off too; so does one that has
                                 // just ended.
                                 const bool alert = reason.find("alert") != std::string::npos;
                                 next_or_fail(!proved && alert ? Obstacle::secret : Obstacle::stranger);
                               }});
  introduction_->say(hello_);
}

void Dial::next_or_fail(Obstacle obstacle) {
  watch_.reset();
  if (!addresses_.empty()) return try_next();
  give_up_ = std::chrono::steady_clock::time_point::max();
  const auto self = shared_from_this();
  events_.failed(obstacle);
}

void Dial::tick(std::chrono::steady_clock::time_point now) {
  if (now < give_up_) return;
  const bool connected = introduction_ != nullptr;
  introduction_.reset();
  next_or_fail(connected ? Obstacle::stranger : Obstacle::unreachable);
}

}  // namespace strait::tcp
