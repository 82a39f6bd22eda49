// What a connection does when its speaker calls it while it reads or writes.

#include "strait/transport/tcp/connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <future>

namespace strait::tcp {
namespace {

using namespace std::chrono_literals;

/// Has no space until it has written three times, as an end of the relay whose other side is slow.
class SlowReader : public Speaker {
 public:
  std::span<std::byte> space() override { return written_ < 3 ? std::span<std::byte>() : std::span(space_); }
  void got(size_t bytes) override { heard_.set_value(bytes); }
  std::span<const std::byte> bytes() override { return std::span(says_).first(written_ < 3 ? 1 : 0); }
  void wrote(size_t /*bytes*/) override {
    if (++written_ == 3) connection->pump();  // there is space again
  }
  void closed(const std::string& reason) override { ADD_FAILURE() << reason; }

  std::future<size_t> heard() { return heard_.get_future(); }

  std::shared_ptr<Connection> connection;

 private:
  int written_ = 0;
  std::array<std::byte, 1> says_{};
  std::array<std::byte, 100> space_{};
  std::promise<size_t> heard_;
};

TEST(Connection, ReadsOnWhenItsSpeakerHasSpaceAgainWhileItWrites) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  const Socket far(ends[1]);
  ASSERT_EQ(send(far.descriptor(), "word", 4, 0), 4);
  EventLoop loop([](const std::string& reason) { ADD_FAILURE() << reason; });
  SlowReader speaker;
  auto heard = speaker.heard();
  loop.post([&] {
    speaker.connection = std::make_shared<Connection>(loop, make_plain_stream(Socket(ends[0])));
    speaker.connection->set_speaker(speaker);
    speaker.connection->pump();
  });
  ASSERT_EQ(heard.wait_for(5s), std::future_status::ready) << "it has forgotten to read";
  EXPECT_EQ(heard.get(), 4U);
  std::promise<void> gone;
  loop.post([&] {
    speaker.connection->close();
    speaker.connection.reset();
    gone.set_value();
  });
  gone.get_future().wait();
}

}  // namespace
}  // namespace strait::tcp
