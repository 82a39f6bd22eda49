#include "strait/transport/gloo/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "strait/transport/store_protocol.h"
#include "tests/transport/gloo/ranks.h"

namespace strait {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

/// Two ranks that have met.
class TwoRanks : public testing::Test {
 protected:
  TwoRanks() : first_(ranks_.membership(0), 20s, nobody), second_(ranks_.membership(1), 20s, nobody) {}

  static void nobody(const std::vector<int>&) {}

  void leave(const std::string& text) {
    second_.board()->store()->set("failure", std::vector<uint8_t>(text.begin(), text.end()));
  }

  const test::Ranks ranks_{2};
  Rendezvous first_;
  Rendezvous second_;
};

TEST_F(TwoRanks, AWordIsHeardWithWhatItSays) {
  for (Rendezvous* rendezvous : {&first_, &second_}) rendezvous->board()->trust({"a", "b"});
  second_.board()->leave({.rank = 1, .diverged = true, .reason = "the loss is not\nfinite"});
  first_.board()->leave({.rank = 0, .diverged = false, .reason = "later"});
  const auto word = first_.board()->read();
  ASSERT_TRUE(word);
  EXPECT_EQ(word->rank, 1);
  EXPECT_TRUE(word->diverged);
  EXPECT_EQ(word->reason, "the loss is not\nfinite");
}

TEST_F(TwoRanks, AWordWithoutItsRanksTokenIsNone) {
  first_.board()->trust({"a", "b"});
  for (const char* forged :
       {"1 1 - diverged", "1 1 a diverged", "1 1 bb diverged", "1 1", "", "1 2 b x", "9 1 b x", "-1 1 b x"}) {
    leave(forged);
    EXPECT_FALSE(first_.board()->read()) << forged;
  }
  leave("1 1 b diverged");
  EXPECT_TRUE(first_.board()->read()->diverged);
}

TEST_F(TwoRanks, BeforeTokensAreKnownNoWordSaysThatTrainingDiverged) {
  leave("1 1 - forged");
  const auto word = first_.board()->read();
  ASSERT_TRUE(word);
  EXPECT_FALSE(word->diverged);
  EXPECT_EQ(word->reason, "forged");
}

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
