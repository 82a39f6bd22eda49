#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <thread>

#include "strait/transport/socket.h"

namespace strait::test {

/// Passes on what is sent to its port to another port of this machine, and back, until it cuts the link.
class LinkCutter {
 public:
  explicit LinkCutter(uint16_t to)
      : to_(to), listener_(listen_at("127.0.0.1", 0)), thread_([this] { run(); }) {}
  ~LinkCutter() {
    stopped_ = true;
    thread_.join();
  }
  LinkCutter(const LinkCutter&) = delete;
  LinkCutter& operator=(const LinkCutter&) = delete;

  uint16_t port() const { return port_of(listener_); }

  /// Breaks all connections off, and takes none for so long. What is sent after it returns does not pass before
  /// the pause is over.
  void cut(std::chrono::milliseconds pause) {
    until_ = (std::chrono::steady_clock::now() + pause).time_since_epoch().count();
    const int cut = ++cuts_;
    for (int done = done_; done < cut; done = done_) done_.wait(done);
  }

  /// Passes nothing on for so long, and breaks nothing off.
  void freeze(std::chrono::milliseconds pause) {
    frozen_until_ = (std::chrono::steady_clock::now() + pause).time_since_epoch().count();
  }

  /// Passes on at most so many bytes a second.
  void throttle(double bytes_per_second) { rate_ = bytes_per_second; }

  /// Connections that there have been.
  int connections() const { return connections_; }

 private:
  struct Pair {
    Socket here;
    Socket there;
  };
  static auto now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

  void run() {
    while (!stopped_) {
      if (now() < frozen_until_) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        continue;
      }
      if (const int cuts = cuts_; cuts != done_) {
        pairs_.clear();
        done_ = cuts;
        done_.notify_all();
      }
      if (now() >= until_) accept_one();
      wait();
      const size_t passed = passed_;
      std::erase_if(pairs_, [this](const Pair& pair) {
        return !pass(pair.here, pair.there) || !pass(pair.there, pair.here);
      });
      if (rate_ > 0) std::this_thread::sleep_for(std::chrono::duration<double>((passed_ - passed) / rate_));
    }
  }

  void accept_one() {
    auto here = accept_from(listener_);
    if (!here) return;
    auto there = connect_to("127.0.0.1", to_, std::chrono::steady_clock::now() + std::chrono::seconds(1));
    if (!there) return;
    ++connections_;
    pairs_.push_back({std::move(*here), std::move(*there)});
  }

  void wait() const {
    std::vector<pollfd> waits;
    for (const auto& pair : pairs_) {
      waits.push_back({pair.here.descriptor(), POLLIN, 0});
      waits.push_back({pair.there.descriptor(), POLLIN, 0});
    }
    waits.push_back({listener_.descriptor(), POLLIN, 0});
    poll(waits.data(), waits.size(), 1);
  }

  /// False: one side has closed.
  bool pass(const Socket& from, const Socket& to) {
    std::array<char, 65536> bytes;
    const ssize_t got = recv(from.descriptor(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    passed_ += static_cast<size_t>(got);
    return got > 0 && send_all(to, {bytes.data(), static_cast<size_t>(got)},
                               std::chrono::steady_clock::now() + std::chrono::seconds(5));
  }

  uint16_t to_;
  Socket listener_;
  std::list<Pair> pairs_;
  size_t passed_ = 0;             ///< bytes
  std::atomic<double> rate_ = 0;  ///< 0: as fast as it goes
  std::atomic<int64_t> until_ = 0;
  std::atomic<int64_t> frozen_until_ = 0;
  std::atomic<int> cuts_ = 0;  ///< asked for
  std::atomic<int> done_ = 0;  ///< of them
  std::atomic<int> connections_ = 0;
  std::atomic<bool> stopped_ = false;
  std::thread thread_;
};

}  // namespace strait::test
