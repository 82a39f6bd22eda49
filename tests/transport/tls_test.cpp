#include "strait/transport/tcp/tls.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <span>
#include <vector>

#include "strait/base/random.h"
#include "tests/transport/tls_impostor.h"

namespace strait::tcp {
namespace {

/// Two streams that are each other's other side, over sockets whose buffers are small.
class TlsStreams : public testing::Test {
 protected:
  TlsStreams() {
    std::signal(SIGPIPE, SIG_IGN);  // as in a loop's thread
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    for (const int end : ends) {
      const int size = 4'000;  // less than a record
      setsockopt(end, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    }
    dialer_ = tls_.make_stream(Socket(ends[0]), Side::dialer);
    listener_ = tls_.make_stream(Socket(ends[1]), Side::listener);
    for (int turn = 0; turn < 10; ++turn) {
      const bool one = dialer_->prove().state == Progress::State::moved;
      if (listener_->prove().state == Progress::State::moved && one) return;
    }
    ADD_FAILURE() << "they do not come together";
  }

  Tls tls_{"a secret"};
  std::unique_ptr<Stream> dialer_;
  std::unique_ptr<Stream> listener_;
};

TEST_F(TlsStreams, TheWriterKnowsOfAllThatTheReaderHas) {
  CounterRandom random(1);
  std::vector<std::byte> text(3'000'000);
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::byte>(random.below(256));
  std::vector<std::byte> got(text.size());
  size_t sent = 0;
  size_t offered = 0;
  size_t read = 0;
  int waited = 0;
  while (read < text.size()) {
    Progress wrote;
    do {
      // What is offered grows between two tries, as it does when messages are added.
      offered = std::min(text.size() - sent, offered + random.below(50'000));
      wrote = dialer_->write(std::span(text).subspan(sent, offered));
      sent += wrote.bytes;
      offered -= wrote.bytes;
    } while (wrote.bytes > 0 && sent < text.size());
    if (wrote.state == Progress::State::wants_write) ++waited;
    size_t took = 1;
    while (took > 0 && read < got.size()) {
      took = listener_->read(std::span(got).subspan(read)).bytes;
      read += took;
    }
    ASSERT_LE(read, sent);
  }
  EXPECT_EQ(got, text);
  EXPECT_GT(waited, 10);
}

TEST(TlsDialer, BelievesNobodyWhoKnowsNoSecretAndTellsHimNothing) {
  std::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  const Tls tls("a secret");
  const auto dialer = tls.make_stream(Socket(ends[0]), Side::dialer);
  test::TlsImpostor impostor{Socket(ends[1])};
  Progress proved;
  for (int turn = 0; turn < 10 && proved.state != Progress::State::closed; ++turn) {
    proved = dialer->prove();
    if (proved.state == Progress::State::moved) dialer->write(std::as_bytes(std::span("a word")));
    impostor.turn();
  }
  EXPECT_EQ(proved.state, Progress::State::closed);
  EXPECT_EQ(dialer->reason(), "certificate verify failed");
  EXPECT_FALSE(impostor.is_believed());
  EXPECT_EQ(impostor.heard(), "");
}

}  // namespace
}  // namespace strait::tcp
