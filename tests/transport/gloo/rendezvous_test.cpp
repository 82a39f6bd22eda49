#include "strait/transport/gloo/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "strait/transport/gloo/store_protocol.h"
#include "strait/transport/socket.h"
#include "tests/transport/ranks.h"

namespace strait {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

/// Two ranks that have met.
class TwoRanks : public testing::Test {
 protected:
  TwoRanks() : first_(ranks_.membership(0), 20s, nobody), second_(ranks_.membership(1), 20s, nobody) {}

  static void nobody(const std::vector<int>&) {}

  const test::Ranks ranks_{2};
  Rendezvous first_;
  Rendezvous second_;
};

TEST_F(TwoRanks, HandshakesComeInTheOrderOfRanks) {
  std::thread other([&] { EXPECT_THAT(second_.exchange("two", nobody), ElementsAre("one", "two")); });
  EXPECT_THAT(first_.exchange("one", nobody), ElementsAre("one", "two"));
  other.join();
}

TEST(Rendezvous, ARankThatDiesBeforeAllHaveComeIsNamed) {
  const test::Ranks ranks(3, 20s);
  Rendezvous first(ranks.membership(0), 20s, [](const auto&) {});
  {
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    const auto dying = connect_to("127.0.0.1", ranks.membership(2).master_port, deadline);
    ASSERT_TRUE(dying);
    std::array<char, store::kAnswerSize> answer{};
    EXPECT_TRUE(send_all(*dying, std::string(store::kMagic) + std::string("\2\0\0\0\0\0", 6), deadline));
    EXPECT_TRUE(receive_all(*dying, answer, deadline));
  }
  try {
    first.exchange("hello", [](const auto&) {});
    FAIL() << "all have come";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "rank 0: rank 2 came, but it ended without a word");
  }
}

}  // namespace
}  // namespace strait
