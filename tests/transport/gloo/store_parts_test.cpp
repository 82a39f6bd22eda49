// What the store of a group is made of, each part by itself.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <thread>

#include "strait/transport/gloo/presence.h"
#include "strait/transport/gloo/store_admission.h"
#include "strait/transport/gloo/store_connection.h"
#include "strait/transport/gloo/store_protocol.h"
#include "strait/transport/gloo/store_table.h"

namespace strait {
namespace {

using namespace std::chrono_literals;
using store::Answer;

TEST(StoreTable, CountsWhatKeysAndValuesTake) {
  StoreTable table(10);
  EXPECT_TRUE(table.set("ab", "12345678"));
  EXPECT_TRUE(table.set("ab", "1234567"));  // in place of the other
  EXPECT_TRUE(table.set("c", ""));
  EXPECT_FALSE(table.set("d", ""));
  EXPECT_EQ(table.find("d"), nullptr);
  EXPECT_FALSE(table.set("ab", "123456789"));
  EXPECT_EQ(*table.find("ab"), "1234567");
  EXPECT_TRUE(table.set("ab", ""));
  EXPECT_TRUE(table.set("d", "123456"));
}

TEST(StoreTable, PutsBeyondItsLimit) {
  StoreTable table(3);
  table.put("key", "value");
  EXPECT_EQ(*table.find("key"), "value");
  EXPECT_FALSE(table.set("a", ""));
  table.put("key", "");
  EXPECT_FALSE(table.set("a", ""));
}

TEST(StoreTable, AddsToNumbersOnly) {
  StoreTable table(12);
  EXPECT_EQ(table.add("sum", 5), 5U);
  EXPECT_EQ(table.add("sum", ~uint64_t{0}), 4U) << "modulo 2^64";
  EXPECT_EQ(*table.find("sum"), std::string("\4\0\0\0\0\0\0\0", 8));
  EXPECT_FALSE(table.add("more", 1)) << "there is no room";
  EXPECT_EQ(table.find("more"), nullptr);
  EXPECT_TRUE(table.set("sum", "1234567"));
  EXPECT_FALSE(table.add("sum", 1));
  EXPECT_EQ(*table.find("sum"), "1234567");
}

TEST(StoreAdmission, LetsEachRankOfTheAttemptInOnce) {
  StoreAdmission admission(2, "attempt");
  EXPECT_EQ(admission.admit(0, "other"), Answer::other_attempt);
  EXPECT_EQ(admission.admit(2, "attempt"), Answer::no_such_rank);
  EXPECT_EQ(admission.admit(1, "attempt"), Answer::welcome);
  EXPECT_EQ(admission.admit(1, "attempt"), Answer::taken);
  EXPECT_FALSE(admission.is_complete());
  EXPECT_EQ(admission.admit(0, "attempt"), Answer::welcome);
  EXPECT_TRUE(admission.is_complete());
}

TEST(Presence, IsWaitedForFromAnotherThread) {
  Presence presence;
  presence.set(3);
  std::thread leaving([&] {
    for (size_t count = 2; count > 0; --count) presence.set(count);
  });
  const auto before = std::chrono::steady_clock::now();
  presence.wait_for_at_most(1, 20s);
  EXPECT_LT(std::chrono::steady_clock::now() - before, 20s) << "it ends with the last that leaves";
  leaving.join();
  const auto start = std::chrono::steady_clock::now();
  presence.set(2);
  presence.wait_for_at_most(1, 20ms);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 20ms);
}

/// A store's side of a connection and the other one.
class StoreConnectionTest : public testing::Test {
 protected:
  StoreConnectionTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    connection_ = std::make_unique<StoreConnection>(Socket(ends[0]), deadline());
    other_ = Socket(ends[1]);
  }

  static Deadline deadline() { return std::chrono::steady_clock::now() + 20s; }
  void say(std::string_view bytes) const { EXPECT_TRUE(send_all(other_, bytes, deadline())); }

  static std::string greeting(const std::string& attempt) {
    std::string bytes(store::kMagic);
    store::put(bytes, uint32_t{1});
    store::put(bytes, static_cast<uint16_t>(attempt.size()));
    return bytes + attempt;
  }

  static std::string request(const std::string& key, const std::string& value) {
    std::string bytes;
    store::put(bytes, store::Operation::set);
    store::put(bytes, static_cast<uint16_t>(key.size()));
    store::put(bytes, static_cast<uint32_t>(value.size()));
    return bytes + key + value;
  }

  std::unique_ptr<StoreConnection> connection_;
  Socket other_;
};

TEST_F(StoreConnectionTest, GivesAMessageOnceItIsThere) {
  const std::string text = greeting("attempt");
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    say(text.substr(i, 1));
    EXPECT_FALSE(connection_->read()) << i;
  }
  say(text.substr(text.size() - 1));
  EXPECT_EQ(connection_->read(), text);
  EXPECT_TRUE(connection_->is_open());
}

TEST_F(StoreConnectionTest, GivesRequestsOneByOne) {
  connection_->let_in(3);
  const std::string large(200'000, 'x');
  std::thread sender([&] { say(request("a", "") + request("key", large)); });
  std::vector<std::string> got;
  while (got.size() < 2) {
    if (auto message = connection_->read()) got.push_back(*message);
  }
  sender.join();
  EXPECT_EQ(got[0], request("a", ""));
  EXPECT_EQ(got[1], request("key", large));
  EXPECT_EQ(connection_->rank(), 3);
}

TEST_F(StoreConnectionTest, ReadsNothingWhileAReplyWaits) {
  EXPECT_EQ(connection_->events(), POLLIN);
  const std::string reply(4'000'000, 'r');
  connection_->reply(reply);
  EXPECT_EQ(connection_->events(), POLLOUT);
  say(greeting(""));
  EXPECT_FALSE(connection_->read());
  std::string got(reply.size(), '\0');
  std::thread reader([&] { EXPECT_TRUE(receive_all(other_, got, deadline())); });
  while (connection_->events() == POLLOUT) connection_->write();
  reader.join();
  EXPECT_EQ(got, reply);
  EXPECT_EQ(connection_->read(), greeting(""));
}

TEST_F(StoreConnectionTest, ClosesWhereTooMuchIsDeclared) {
  say(greeting("").substr(0, store::kGreetingSize - 2) + "\xff\xff");
  EXPECT_FALSE(connection_->read());
  EXPECT_FALSE(connection_->is_open());
}

TEST_F(StoreConnectionTest, ARequestMayBeLargerThanAGreeting) {
  connection_->let_in(0);
  const std::string most = request("k", std::string(store::kMaxRequest - store::kRequestSize - 1, 'v'));
  std::thread sender([&] { say(most); });
  std::optional<std::string> got;
  while (!got && connection_->is_open()) got = connection_->read();
  sender.join();
  EXPECT_EQ(got, most);
  say(request("", "").substr(0, 3) + std::string("\0\0\x10\0", 4));
  EXPECT_FALSE(connection_->read());
  EXPECT_FALSE(connection_->is_open());
}

TEST_F(StoreConnectionTest, ClosesWhereTheOtherSideHasGone) {
  other_ = Socket();
  EXPECT_FALSE(connection_->read());
  EXPECT_FALSE(connection_->is_open());
}

}  // namespace
}  // namespace strait
