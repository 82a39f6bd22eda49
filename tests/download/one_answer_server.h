#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

namespace strait::test {

/// Listens on a loopback port of the system's choice and gives each connection the same bytes, then closes
/// it; with no bytes to give it keeps the connection and says nothing.
class OneAnswerServer {
 public:
  explicit OneAnswerServer(std::string answer) : answer_(std::move(answer)) {
    ::setenv("no_proxy", "127.0.0.1", 1);
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* plain = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof(address);
    if (::bind(listener_, plain, size) != 0 || ::listen(listener_, 8) != 0 ||
        ::getsockname(listener_, plain, &size) != 0) {
      throw std::runtime_error("no port on 127.0.0.1");
    }
    port_ = ntohs(address.sin_port);
    if (!answer_.empty()) thread_ = std::thread([this] { serve(); });
  }
  ~OneAnswerServer() {
    stopped_ = true;
    if (thread_.joinable()) thread_.join();
    ::close(listener_);
  }
  OneAnswerServer(const OneAnswerServer&) = delete;
  OneAnswerServer& operator=(const OneAnswerServer&) = delete;

  std::string url(const std::string& file) const {
    return "http://127.0.0.1:" + std::to_string(port_) + "/" + file;
  }

 private:
  void serve() {
    while (!stopped_) {
      pollfd waiting{listener_, POLLIN, 0};
      if (::poll(&waiting, 1, 20) != 1) continue;
      const int connection = ::accept(listener_, nullptr, nullptr);
      std::array<char, 4096> request{};
      if (::recv(connection, request.data(), request.size(), 0) > 0) {
        ::send(connection, answer_.data(), answer_.size(), MSG_NOSIGNAL);
      }
      ::close(connection);
    }
  }

  std::string answer_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

}  // namespace strait::test
