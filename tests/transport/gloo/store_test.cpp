// The store of a group: what ranks keep there, who is let in, and strangers who connect to it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <chrono>
#include <memory>
#include <thread>

#include "strait/base/error.h"
#include "strait/base/random.h"
#include "strait/base/token.h"
#include "strait/transport/c10d/failure_board.h"
#include "strait/transport/gloo/store_client.h"
#include "strait/transport/gloo/store_protocol.h"
#include "strait/transport/gloo/store_server.h"
#include "strait/transport/join_group.h"
#include "strait/transport/port.h"
#include "tests/support/errors.h"

namespace strait {
namespace {

using namespace std::chrono_literals;
using testing::AnyOf;
using testing::HasSubstr;

constexpr auto kLong = 20s;  // nobody here comes near it

class Store : public testing::Test {
 protected:
  void serve(int ranks, StoreServer::Limits limits = {}) {
    server_ = std::make_unique<StoreServer>("127.0.0.1", 0, ranks, "attempt", limits);
  }

  Membership member(int rank, const std::string& attempt = "attempt") const {
    Membership member;
    member.rank = rank;
    member.master_address = "127.0.0.1";
    member.master_port = server_->port();
    member.attempt = attempt;
    return member;
  }

  std::unique_ptr<StoreClient> join(int rank) const {
    return std::make_unique<StoreClient>(member(rank), kLong);
  }

  /// What the rank hears that is not let in; "" for one that is.
  template <class Refusal = Error>
  std::string refusal(const Membership& member, std::chrono::milliseconds timeout = kLong) const {
    return test::error_of<Refusal>([&] { const StoreClient client(member, timeout); });
  }

  static Deadline soon() { return std::chrono::steady_clock::now() + kLong; }

  Socket stranger() const {
    auto socket = connect_to("127.0.0.1", server_->port(), soon());
    EXPECT_TRUE(socket);
    return std::move(*socket);
  }

  /// One that says it is the rank, and is let in.
  Socket raw_rank(uint32_t rank) const {
    Socket socket = stranger();
    EXPECT_TRUE(send_all(socket, greeting(rank, "attempt"), soon()));
    std::array<char, store::kAnswerSize> answer{};
    EXPECT_TRUE(receive_all(socket, answer, soon()));
    EXPECT_EQ(store::number_at<store::Answer>({answer.data(), answer.size()}, 8), store::Answer::welcome);
    return socket;
  }

  static std::string greeting(uint32_t rank, const std::string& attempt) {
    std::string bytes(store::kMagic);
    store::put(bytes, rank);
    store::put(bytes, static_cast<uint16_t>(attempt.size()));
    return bytes + attempt;
  }

  static std::string head(store::Operation operation, uint16_t key, uint32_t value) {
    std::string bytes;
    store::put(bytes, operation);
    store::put(bytes, key);
    store::put(bytes, value);
    return bytes;
  }

  /// Whether the store closes the connection, whatever it has said before.
  static bool is_closed(const Socket& socket) {
    std::array<char, 1> byte;
    const auto end = soon();
    while (receive_all(socket, byte, end)) {
    }
    return std::chrono::steady_clock::now() < end;
  }

  static std::string wait_for(StoreClient& client, const char* key) {
    while (!client.has(key)) std::this_thread::sleep_for(1ms);
    return client.get(key).value();
  }

  std::unique_ptr<StoreServer> server_;
};

TEST_F(Store, KeepsWhatRanksSet) {
  serve(2);
  const auto first = join(0);
  const auto second = join(1);
  EXPECT_FALSE(second->has("key"));
  EXPECT_EQ(second->get("key"), std::nullopt);
  const std::string value(700'000, 'x');
  first->set("key", value);
  EXPECT_TRUE(second->has("key"));
  EXPECT_EQ(second->get("key"), value);
  second->set("key", "");
  EXPECT_EQ(first->get("key"), "");
  EXPECT_EQ(first->add("count", 3), 3);
  EXPECT_EQ(second->add("count", -5), -2);
}

TEST_F(Store, AddsFromManyThreadsAtOnce) {
  serve(4);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks.emplace_back([this, rank] {
      const auto client = join(rank);
      std::thread other([&] {
        for (int i = 0; i < 200; ++i) client->add("count", 1);
      });
      for (int i = 0; i < 200; ++i) client->add("count", 1);
      other.join();
      while (client->add("count", 0) < 1600) std::this_thread::sleep_for(1ms);
    });
  }
  for (auto& rank : ranks) rank.join();
}

TEST_F(Store, LetsEveryRankOfTheAttemptInOnce) {
  serve(3);
  const auto first = join(0);
  EXPECT_THAT(refusal<RankTaken>(member(0)),
              HasSubstr("rank 0: another process has taken this rank of the group"));
  EXPECT_THAT(refusal(member(1, "another")), HasSubstr("rank 1: another training meets at 127.0.0.1:"));
  EXPECT_THAT(refusal(member(1, "")), HasSubstr("another training"));
  EXPECT_THAT(refusal(member(3)), HasSubstr("rank 3: the group at 127.0.0.1:"));
  const auto second = join(1);
  const auto third = join(2);
  // All have come: nobody listens any more, or the store is about to turn away who connects, and it is there
  // for them.
  EXPECT_THAT(refusal(member(1), 300ms), AnyOf(HasSubstr("rank 1: nothing answers at 127.0.0.1:"),
                                               HasSubstr("does not answer as rank 0 would")));
  third->set("a", "b");
  EXPECT_EQ(first->get("a"), "b");
}

TEST_F(Store, SaysWhichRankEndedWithoutLeave) {
  serve(4);
  const auto first = join(0);
  join(2).reset();  // in order
  { const Socket killed = raw_rank(1); }
  EXPECT_EQ(wait_for(*first, kGoneKey), "1");
  { const Socket later = raw_rank(3); }
  EXPECT_EQ(first->get(kGoneKey), "1");
}

TEST_F(Store, AWordCountsBeforeTheEndOfItsRank) {
  serve(2);
  const auto first = join(0);
  first->set(kFailureKey, "why");
  { const Socket killed = raw_rank(1); }
  server_->wait_until_left(kLong);
  EXPECT_FALSE(first->has(kGoneKey));
}

TEST_F(Store, EndsWithRanksAndStrangersConnected) {
  serve(2);
  const auto first = join(0);
  const Socket silent = stranger();
  const Socket half = stranger();
  ASSERT_TRUE(send_all(half, std::string(1, '\0'), soon()));
  server_.reset();
  EXPECT_TRUE(is_closed(silent));
  EXPECT_THROW(first->get("key"), Error);
  EXPECT_THROW(first->set("key", ""), Error);
}

TEST_F(Store, SilentStrangersAreTurnedAway) {
  serve(2, {.greeting = 50ms});
  const auto first = join(0);
  const Socket silent = stranger();
  const Socket half = stranger();
  ASSERT_TRUE(send_all(half, greeting(1, "attempt").substr(0, 17), soon()));
  EXPECT_TRUE(is_closed(silent));
  EXPECT_TRUE(is_closed(half));
  const auto second = join(1);
  second->set("a", "b");
  EXPECT_EQ(first->get("a"), "b");
}

TEST_F(Store, StrangersGoWhenAllHaveCome) {
  serve(1);
  const Socket silent = stranger();
  const auto first = join(0);
  EXPECT_TRUE(is_closed(silent));
  first->set("a", "b");
}

TEST_F(Store, ACrowdOfStrangersKeepsNoRankOut) {
  serve(2);
  std::vector<Socket> crowd;
  for (int i = 0; i < 1100; ++i) {
    auto socket = connect_to("127.0.0.1", server_->port(), soon());
    if (socket) crowd.push_back(std::move(*socket));
  }
  EXPECT_GT(crowd.size(), 400U);
  const auto first = join(0);
  const auto second = join(1);
  first->set("a", "b");
  EXPECT_EQ(second->get("a"), "b");
}

TEST_F(Store, RunsOnWithoutFreeDescriptors) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  serve(2, {.strangers = 1000});
  const auto first = join(0);
  std::vector<Socket> crowd;
  const rlimit few{.rlim_cur = 60, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  while (auto socket = connect_to("127.0.0.1", server_->port(), soon())) crowd.push_back(std::move(*socket));
  crowd.resize(5);
  const auto second = join(1);
  setrlimit(RLIMIT_NOFILE, &before);
  second->set("a", "b");
  EXPECT_EQ(first->get("a"), "b");
}

TEST_F(Store, WhatIsTooLongIsNotWaitedFor) {
  serve(2);
  const auto first = join(0);
  const Socket name = stranger();
  ASSERT_TRUE(send_all(name, greeting(1, "").substr(0, 12) + "\xff\xff", soon()));
  EXPECT_TRUE(is_closed(name));
  const Socket value = raw_rank(1);
  ASSERT_TRUE(send_all(value, head(store::Operation::set, 1, 3U << 30), soon()));
  EXPECT_TRUE(is_closed(value));
  EXPECT_EQ(wait_for(*first, kGoneKey), "1");
}

TEST_F(Store, HasRoomForSoMuchOnly) {
  serve(3, {.bytes = 1000});
  const auto first = join(0);
  const auto second = join(1);
  for (int i = 0; i < 10; ++i) first->set("same", std::string(900, 'x'));
  EXPECT_THROW(second->set("more", std::string(900, 'x')), Error);
  EXPECT_EQ(first->get("same"), std::string(900, 'x'));
  EXPECT_FALSE(first->has("more"));
}

TEST_F(Store, AddRefusesWhatIsNoNumber) {
  serve(2);
  const auto first = join(0);
  first->set("word", "three bytes");
  const auto second = join(1);
  EXPECT_THROW(second->add("word", 1), Error);
  EXPECT_EQ(first->get("word"), "three bytes");
}

// Half of them begin as a rank does, so that they come further.
TEST_F(Store, NoiseHarmsNobody) {
  serve(200, {.bytes = 1 << 20});
  const auto first = join(0);
  first->set("a", "b");
  CounterRandom random(5);
  for (uint32_t i = 1; i < 199; ++i) {
    std::string noise;
    const size_t size = random.below(200);
    for (size_t k = 0; k < size; ++k) noise += static_cast<char>(random.below(i % 3 == 0 ? 6 : 256));
    const Socket socket = i % 2 == 0 ? stranger() : raw_rank(i);
    send_all(socket, noise, soon());
  }
  EXPECT_EQ(first->get("a"), "b");
  const auto last = join(199);
  EXPECT_EQ(last->get("a"), "b");
}

TEST_F(Store, AForeignServerIsNoStore) {
  serve(1);
  const Socket listener = listen_at("127.0.0.1", 0);
  Membership member = this->member(0);
  member.master_port = port_of(listener);
  std::thread other([&] {
    std::optional<Socket> guest;
    while (!(guest = accept_from(listener))) std::this_thread::sleep_for(1ms);
    send_all(*guest, "HTTP/1.1 400 Bad Request\r\n\r\n", soon());
    std::this_thread::sleep_for(300ms);
  });
  EXPECT_THAT(refusal(member, 300ms), HasSubstr("does not answer as rank 0 would"));
  other.join();
}

TEST(StoreServer, SaysWhyItCannotListen) {
  const auto reason = [](const std::string& host, uint16_t port) {
    return test::error_of<Error>([&] { const StoreServer server(host, port, 1, ""); });
  };
  const StoreServer other("127.0.0.1", 0, 1, "");
  EXPECT_EQ(reason("127.0.0.1", other.port()), "another program listens there");
  EXPECT_EQ(reason("192.0.2.1", 0), "this machine does not have that address");
  EXPECT_EQ(reason("no.such.host.invalid", 0), "this machine does not know that name");
  EXPECT_EQ(reason("localhost", 0), "");
}

TEST(StoreServer, ListensAtItsAddressAlone) {
  const StoreServer server("127.0.0.2", 0, 1, "");
  EXPECT_FALSE(connect_to("127.0.0.1", server.port(), std::chrono::steady_clock::now() + 1s));
  EXPECT_TRUE(connect_to("127.0.0.2", server.port(), std::chrono::steady_clock::now() + 1s));
}

TEST(Token, IsAnotherOneEachTime) {
  EXPECT_EQ(random_token().size(), 32U);
  EXPECT_NE(random_token(), random_token());
}

}  // namespace
}  // namespace strait
