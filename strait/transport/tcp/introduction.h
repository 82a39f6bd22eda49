#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "strait/transport/tcp/connection.h"

namespace strait::tcp {

/// What the two sides of a connection say first: a text each, of which the dialer's is first. Then the
/// connection is somebody else's. A text goes as `strait-2`, its size (u32) and its bytes.
class Introduction : public Speaker {
 public:
  /// Most bytes of a text.
  static constexpr size_t kMaxText = 4096;

  struct Events {
    /// The other side's text has come. It may end this object.
    std::function<void(const std::string& text)> heard;

    /// It will not come, and why; not called once it has. `proved`: both sides had proved what they know. It
    /// may end this object.
    std::function<void(const std::string& reason, bool proved)> failed;
  };

  Introduction(std::shared_ptr<Connection> connection, Events events);
  ~Introduction() override;
  Introduction(const Introduction&) = delete;
  Introduction& operator=(const Introduction&) = delete;

  /// Says a text; `then`, once it is written, may end this object.
  void say(const std::string& text, std::function<void()> then = {});

  /// Begins.
  void start() { connection_->pump(); }

  const Socket& socket() const { return connection_->socket(); }

  /// Gives the connection away.
  std::shared_ptr<Connection> release() { return std::move(connection_); }

  std::span<std::byte> space() override;
  void got(size_t bytes) override;
  std::span<const std::byte> bytes() override;
  void wrote(size_t bytes) override;
  void opened() override { proved_ = true; }
  void closed(const std::string& reason) override;

 private:
  std::shared_ptr<Connection> connection_;
  Events events_;
  std::string out_;
  std::function<void()> then_;
  std::vector<std::byte> in_;
  size_t have_ = 0;
  bool proved_ = false;
  bool heard_ = false;
};

}  // namespace strait::tcp
