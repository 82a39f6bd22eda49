#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "strait/transport/tcp/address.h"

namespace strait::tcp {

/// A thread that waits for sockets and does one piece of work after another. All but post() is for that thread.
class EventLoop {
 public:
  using Work = std::function<void()>;

  /// `broken` hears in that thread of an exception that a piece of work let out.
  explicit EventLoop(std::function<void(const std::string& reason)> broken);

  /// Ends the thread after the piece of work that it does. Watches must have gone.
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  /// From any thread: has the work done, in the order of the calls.
  void post(Work work);

  /// Has the work done again and again.
  void every(std::chrono::milliseconds pause, Work work);

  /// Waits for a descriptor, which must outlive it. It drops the work that waits when it goes.
  class Watch {
   public:
    virtual ~Watch() = default;

    /// Has the work done once the descriptor can be read; a call while another waits is one too many.
    virtual void when_readable(Work work) = 0;

    /// The same for writing.
    virtual void when_writable(Work work) = 0;
  };
  std::unique_ptr<Watch> watch(int descriptor);

  /// The addresses of a host; none where it is not known. The loop goes on meanwhile.
  using Found = std::function<void(const std::vector<SocketAddress>& addresses)>;
  void resolve(const std::string& host, uint16_t port, Found found);

 private:
  class Asio;
  std::unique_ptr<Asio> asio_;
};

}  // namespace strait::tcp
