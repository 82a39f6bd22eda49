// Alone includes Asio, which takes seconds to compile.

#include "strait/transport/tcp/event_loop.h"

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

namespace strait::tcp {
namespace {

class AsioWatch : public EventLoop::Watch {
 public:
  AsioWatch(asio::io_context& context, int descriptor) : descriptor_(context, descriptor) {}
  ~AsioWatch() override { descriptor_.release(); }  // its owner closes it
  AsioWatch(const AsioWatch&) = delete;
  AsioWatch& operator=(const AsioWatch&) = delete;

  void when_readable(EventLoop::Work work) override {
    wait(asio::posix::stream_descriptor::wait_read, std::move(work));
  }
  void when_writable(EventLoop::Work work) override {
    wait(asio::posix::stream_descriptor::wait_write, std::move(work));
  }

 private:
  void wait(asio::posix::stream_descriptor::wait_type event, EventLoop::Work work) {
    descriptor_.async_wait(event, [work = std::move(work)](const asio::error_code& error) {
      if (error != asio::error::operation_aborted) work();
    });
  }
  asio::posix::stream_descriptor descriptor_;
};

SocketAddress address_of(const asio::ip::tcp::endpoint& endpoint) {
  SocketAddress address;
  address.size = static_cast<socklen_t>(endpoint.size());
  std::memcpy(&address.storage, endpoint.data(), endpoint.size());
  return address;
}

}  // namespace

class EventLoop::Asio {
 public:
  explicit Asio(std::function<void(const std::string& reason)> broken)
      : broken_(std::move(broken)), thread_([this] { run(); }) {}
  ~Asio() {
    context_.stop();
    thread_.join();
  }
  Asio(const Asio&) = delete;
  Asio& operator=(const Asio&) = delete;

  asio::io_context& context() { return context_; }
  asio::ip::tcp::resolver& resolver() { return resolver_; }

  void every(std::chrono::milliseconds pause, Work work) {
    timer_.expires_after(pause);
    timer_.async_wait([this, pause, work = std::move(work)](const asio::error_code& error) {
      if (error) return;
      work();
      every(pause, work);
    });
  }

 private:
  void run() {
    // Signals are for the program's own threads; one that writes to a closed socket is none.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    while (!context_.stopped()) {
      try {
        context_.run();
      } catch (const std::exception& error) {
        broken_(error.what());
      }
    }
  }

  std::function<void(const std::string& reason)> broken_;
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> guard_{context_.get_executor()};
  asio::ip::tcp::resolver resolver_{context_};
  asio::steady_timer timer_{context_};
  std::thread thread_;
};

EventLoop::EventLoop(std::function<void(const std::string& reason)> broken)
    : asio_(std::make_unique<Asio>(std::move(broken))) {}

EventLoop::~EventLoop() = default;

void EventLoop::post(Work work) { asio::post(asio_->context(), std::move(work)); }

void EventLoop::every(std::chrono::milliseconds pause, Work work) { asio_->every(pause, std::move(work)); }

std::unique_ptr<EventLoop::Watch> EventLoop::watch(int descriptor) {
  return std::make_unique<AsioWatch>(asio_->context(), descriptor);
}

void EventLoop::resolve(const std::string& host, uint16_t port, Found found) {
  asio_->resolver().async_resolve(
      host, std::to_string(port),
      [found = std::move(found)](const asio::error_code& error, const auto& results) {
        if (error == asio::error::operation_aborted) return;
        std::vector<SocketAddress> addresses;
        if (!error) {
          for (const auto& entry : results) addresses.push_back(address_of(entry.endpoint()));
        }
        found(addresses);
      });
}

}  // namespace strait::tcp
