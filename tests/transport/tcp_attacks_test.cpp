// What somebody does at rank 0's port while a training runs, without the secret and with it, or in rank 0's
// place. Nothing of it may reach the training.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <csignal>
#include <future>

#include "strait/base/random.h"
#include "strait/transport/tcp/secret.h"
#include "strait/transport/tcp/tls.h"
#include "tests/support/variable.h"
#include "tests/transport/meetings.h"
#include "tests/transport/ranks.h"
#include "tests/transport/tls_impostor.h"

namespace strait {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::IsEmpty;

constexpr const char* kAttackedSecret = "a secret of this test";

Deadline soon() { return std::chrono::steady_clock::now() + 5s; }

Socket connect(uint16_t port) {
  auto socket = connect_to("127.0.0.1", port, soon());
  if (!socket) throw Error("nobody listens at {}", port);
  return std::move(*socket);
}

/// Says it, and waits until the other side has had enough.
void say(uint16_t port, std::string_view text) {
  const Socket socket = connect(port);
  send_all(socket, text, soon());
  shutdown(socket.descriptor(), SHUT_WR);
  std::array<char, 4096> answer{};
  receive_all(socket, answer, soon());
}

/// Somebody who speaks TLS with a secret, and waits for each answer.
class TlsVisitor {
 public:
  TlsVisitor(uint16_t port, const std::string& secret)
      : tls_(secret), stream_(tls_.make_stream(connect(port), tcp::Side::dialer)) {}

  bool prove() {
    return try_until_done([&] { return stream_->prove(); }).state == tcp::Progress::State::moved;
  }
  void say(const std::string& text) {
    try_until_done([&] { return stream_->write(std::as_bytes(std::span(text))); });
  }
  std::string hear() {
    std::array<std::byte, 4096> answer{};
    const auto got = try_until_done([&] { return stream_->read(answer); });
    return {reinterpret_cast<const char*>(answer.data()), got.bytes};
  }

  /// What ranks say to each other first.
  static std::string introduction(std::string_view magic, const std::string& text, uint32_t size) {
    std::string said(magic);
    said.append(reinterpret_cast<const char*>(&size), sizeof(size));
    return said + text;
  }
  std::string introduce(int rank, const std::string& attempt, uint64_t received) {
    const std::string text = fmt::format(
        R"({{"attempt":"{}","rank":{},"ranks":2,"to":0,"token":"mine","relayed":false,"received":{}}})",
        digest(attempt), rank, received);
    say(introduction("strait-2", text, static_cast<uint32_t>(text.size())));
    return hear();
  }

 private:
  static tcp::Progress try_until_done(const std::function<tcp::Progress()>& work) {
    const Deadline end = soon();
    while (true) {
      const auto progress = work();
      const bool waits = progress.state == tcp::Progress::State::wants_read ||
                         progress.state == tcp::Progress::State::wants_write;
      if (!waits || std::chrono::steady_clock::now() > end) return progress;
      std::this_thread::sleep_for(1ms);
    }
  }

  tcp::Tls tls_;
  std::unique_ptr<tcp::Stream> stream_;
};

/// What is done to a port.
struct Attack {
  const char* name;
  void (*work)(uint16_t port);
};

void PrintTo(const Attack& attack, std::ostream* out) { *out << attack.name; }

constexpr uint32_t k3GiB = 3U << 30;

const Attack kAttacks[] = {
    {"Reset",
     [](uint16_t port) {
       const linger at_once{.l_onoff = 1, .l_linger = 0};
       for (int i = 0; i < 100; ++i) {
         const Socket socket = connect(port);
         setsockopt(socket.descriptor(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
       }
     }},
    {"Garbage",
     [](uint16_t port) {
       CounterRandom random(3);
       std::string noise(100'000, '\0');
       for (char& byte : noise) byte = static_cast<char>(random.below(256));
       say(port, noise);
     }},
    {"Http", [](uint16_t port) { say(port, "GET / HTTP/1.1\r\nHost: strait\r\n\r\n"); }},
    {"OneByteAndSilence",
     [](uint16_t port) {
       const Socket socket = connect(port);
       send_all(socket, std::string(1, '\0'), soon());
       std::array<char, 1> answer{};
       EXPECT_FALSE(receive_all(socket, answer, std::chrono::steady_clock::now() + 8s));
     }},
    {"HalfAHandshake",
     [](uint16_t port) {
       const Socket socket = connect(port);
       send_all(socket, std::string("\x16\x03\x01\x02\x00\x01\x00\x01", 8), soon());
       std::this_thread::sleep_for(1s);
     }},
    {"AThousandIdle",
     [](uint16_t port) {
       std::vector<Socket> crowd;
       for (int i = 0; i < 1000; ++i) crowd.push_back(connect(port));
     }},
    {"ARecordOf3GiB",
     [](uint16_t port) {
       std::string key("\x01\x00\x00\x00\x00", 5);  // as a key of c10d's TCPStore would begin
       key.append(reinterpret_cast<const char*>(&k3GiB), sizeof(k3GiB)).append(1 << 20, 'x');
       say(port, key);
     }},
    {"AnotherSecret", [](uint16_t port) { EXPECT_FALSE(TlsVisitor(port, "another").prove()); }},
    {"AnOlderVersion",
     [](uint16_t port) {
       TlsVisitor visitor(port, kAttackedSecret);
       ASSERT_TRUE(visitor.prove());
       visitor.say(TlsVisitor::introduction("strait-1", "{}", 2));
       EXPECT_EQ(visitor.hear(), "");
     }},
    {"ATextOf3GiB",
     [](uint16_t port) {
       TlsVisitor visitor(port, kAttackedSecret);
       ASSERT_TRUE(visitor.prove());
       visitor.say(TlsVisitor::introduction("strait-2", std::string(10'000, ' '), k3GiB));
       EXPECT_EQ(visitor.hear(), "");
     }},
    {"AnotherRun",
     [](uint16_t port) {
       TlsVisitor visitor(port, kAttackedSecret);
       ASSERT_TRUE(visitor.prove());
       EXPECT_THAT(visitor.introduce(1, "of another run", 0), testing::HasSubstr(R"({"refused":"attempt"})"));
     }},
    {"ARankTwice",
     [](uint16_t port) {
       for (const uint64_t received : {uint64_t{0}, uint64_t{1} << 40}) {
         TlsVisitor visitor(port, kAttackedSecret);
         ASSERT_TRUE(visitor.prove());
         EXPECT_THAT(visitor.introduce(1, "", received), testing::HasSubstr(R"({"refused":"taken"})"));
       }
     }},
    {"ARankThatIsNone",
     [](uint16_t port) {
       for (const int rank : {-1, 0, 2, 1 << 30}) {
         TlsVisitor visitor(port, kAttackedSecret);
         ASSERT_TRUE(visitor.prove());
         EXPECT_THAT(visitor.introduce(rank, "", 0), testing::HasSubstr(R"({"refused":"rank"})"));
       }
     }},
};

class Attacked : public testing::TestWithParam<Attack> {
 protected:
  /// Most bytes that the process has had in memory at one time.
  static int64_t most_memory() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return int64_t{1024} * usage.ru_maxrss;
  }
};

INSTANTIATE_TEST_SUITE_P(By, Attacked, testing::ValuesIn(kAttacks),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(Attacked, TheTrainingGoesOn) {
  std::signal(SIGPIPE, SIG_IGN);
  const test::Variable secret("STRAIT_SECRET", kAttackedSecret);
  const test::Ranks ranks(2);
  std::promise<void> begun;
  std::atomic<bool> over = false;
  auto training = std::async(std::launch::async, [&] {
    return ranks.run([&](Group& group) {
      bool goes_on = true;
      for (int round = 0; goes_on; ++round) {
        if (round == 3 && group.rank() == 0) begun.set_value();
        const auto all = group.gather(fmt::format("{} {} {}", group.rank(), round, over.load()));
        const std::string expected = fmt::format("1 {} ", round);
        if (!all[1].starts_with(expected)) throw Error("round {}: rank 1 says {}", round, all[1]);
        goes_on = !all[0].ends_with("true");
        std::this_thread::sleep_for(2ms);
      }
    });
  });
  begun.get_future().wait();
  const int64_t before = most_memory();
  GetParam().work(ranks.membership(0).master_port);
  EXPECT_LT(most_memory() - before, 200 << 20);
  over = true;
  EXPECT_THAT(training.get(), Each(IsEmpty()));
}

/// Two who know the secret and come one after another as the second rank, the later one with what cannot be.
TEST(AttackedRank, EndsInOrderWhenAnotherHasHadMoreThanWasEverSaid) {
  std::signal(SIGPIPE, SIG_IGN);
  const test::Variable secret("STRAIT_SECRET", kAttackedSecret);
  const test::Ranks ranks(2);
  auto first = std::async(std::launch::async, [&]() -> std::string {
    try {
      join_group(
          Carrier::tcp, ranks.membership(0), 20s, "", [](const auto&) {}, [](const auto&) {});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  });
  const uint16_t port = ranks.membership(0).master_port;
  while (!connect_to("127.0.0.1", port, soon())) std::this_thread::sleep_for(1ms);
  for (const uint64_t received : {uint64_t{0}, uint64_t{1} << 40}) {
    TlsVisitor visitor(port, kAttackedSecret);
    ASSERT_TRUE(visitor.prove());
    EXPECT_THAT(visitor.introduce(1, "", received), testing::HasSubstr(R"("received":0)"));
    if (received > 0) {
      EXPECT_EQ(visitor.hear(), "");
    }
  }
  EXPECT_THAT(first.get(),
              testing::HasSubstr("rank 1, to rank 0: 1099511627776 bytes have come, expected 0 to "));
}

TEST(AttackedRank, TellsNothingToOneInTheFirstOnesPlaceWhoKnowsNoSecret) {
  std::signal(SIGPIPE, SIG_IGN);
  const test::Variable secret("STRAIT_SECRET", kAttackedSecret);
  const Socket place = listen_at("127.0.0.1", 0);
  Membership member = test::Ranks(2).membership(1);
  member.master_port = port_of(place);
  std::atomic<bool> over = false;
  int visits = 0;
  std::string heard;
  std::thread impostor([&] {
    while (!over) {
      auto socket = accept_from(place);
      if (socket) {
        ++visits;
        test::TlsImpostor visited(std::move(*socket));
        while (!over && visited.turn()) std::this_thread::sleep_for(1ms);
        heard += visited.heard();
      }
      std::this_thread::sleep_for(1ms);
    }
  });
  std::string error;
  try {
    join_group(
        Carrier::tcp, member, 2s, "settings", [](const auto&) {}, [](const auto&) {});
  } catch (const Error& refused) {
    error = refused.what();
  }
  over = true;
  impostor.join();
  EXPECT_EQ(error,
            "rank 1: what listens at " + member.rendezvous_endpoint() + " does not answer as rank 0 would");
  EXPECT_GT(visits, 0);
  EXPECT_EQ(heard, "");
}

}  // namespace
}  // namespace strait
