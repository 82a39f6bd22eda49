#include "strait/transport/c10d/failure_board.h"

#include <gtest/gtest.h>

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "strait/base/error.h"
#include "strait/transport/c10d/store_call.h"

namespace strait {
namespace {

using namespace std::chrono_literals;

/// The boards of two ranks.
class TwoBoards : public testing::Test {
 protected:
  void trust() {
    for (FailureBoard* board : {&first_, &second_}) board->trust({"a", "b"});
  }
  void write(const std::string& text) { store_->set(kFailureKey, store::bytes_of(text)); }

  /// What the first rank throws that waits for the peer.
  template <class Kind>
  std::string explanation(int peer, const std::string& message) const {
    try {
      first_.explain("here", peer, message);
    } catch (const Kind& error) {
      return error.what();
    }
  }

  c10::intrusive_ptr<c10d::Store> store_ = c10::make_intrusive<c10d::HashStore>();
  FailureBoard first_{store_, 0, 2, 1s};
  FailureBoard second_{store_, 1, 2, 1s};
};

TEST_F(TwoBoards, AWordIsHeardWithWhatItSays) {
  trust();
  EXPECT_FALSE(first_.has_word());
  EXPECT_FALSE(first_.read());
  second_.leave({.rank = 1, .diverged = true, .reason = "the loss is not\nfinite"});
  first_.leave({.rank = 0, .diverged = false, .reason = "later"});
  EXPECT_TRUE(first_.has_word());
  const auto word = first_.read();
  ASSERT_TRUE(word);
  EXPECT_EQ(word->rank, 1);
  EXPECT_TRUE(word->diverged);
  EXPECT_EQ(word->reason, "the loss is not\nfinite");
}

TEST_F(TwoBoards, AWordWithoutItsRanksTokenIsNone) {
  trust();
  for (const char* forged :
       {"1 1 - diverged", "1 1 a diverged", "1 1 bb diverged", "1 1", "", "1 2 b x", "9 1 b x", "-1 1 b x"}) {
    write(forged);
    EXPECT_FALSE(first_.read()) << forged;
  }
  write("1 1 b diverged");
  EXPECT_TRUE(first_.read()->diverged);
}

TEST_F(TwoBoards, BeforeTokensAreKnownNoWordSaysThatTrainingDiverged) {
  write("1 1 - forged");
  const auto word = first_.read();
  ASSERT_TRUE(word);
  EXPECT_FALSE(word->diverged);
  EXPECT_EQ(word->reason, "forged");
}

TEST_F(TwoBoards, ExplainsByTheWordOrElseByTheMessage) {
  trust();
  EXPECT_EQ(explanation<Error>(1, "Timed out waiting 10ms"), "here: rank 1 was silent for the timeout of 1 s");
  EXPECT_EQ(explanation<Error>(-1, "[a.cc:1] Connection closed by peer [::1]:2"),
            "here: another rank is gone: connection closed");
  write("1 0 b disk full");
  EXPECT_EQ(explanation<Error>(1, "any"), "here: rank 1 is gone; the first to fail was rank 1: disk full");
  write("1 1 b not finite");
  EXPECT_EQ(explanation<NumericError>(1, "any"), "rank 1: not finite");
  write("0 0 a its own");
  EXPECT_EQ(explanation<Error>(1, "Broken pipe"), "here: rank 1 is gone: connection closed");
  store_->set(kGoneKey, store::bytes_of("1"));
  EXPECT_EQ(explanation<Error>(1, "any"), "here: rank 1 is gone: it ended without a word");
}

}  // namespace
}  // namespace strait
