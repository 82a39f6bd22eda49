#include "strait/run/metrics_tail.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temp_dir.h"

namespace strait {
namespace {

constexpr const char* kFirst =
    R"({"epoch":0,"steps":1,"train_loss":2.5,"train_accuracy":9.5,"test":{"off":{"loss":0.5,"accuracy":10.5},"on":{"loss":0.5,"accuracy":11.5},"samples":5},"lr":0.1,"seconds":1,"samples_per_second":1,"evaluation_seconds":1,"data_wait_seconds":0,"boundaries":[]})";
constexpr const char* kSecond =
    R"({"epoch":1,"steps":2,"train_loss":1.5,"train_accuracy":9.5,"test":{"off":{"loss":0.5,"accuracy":20.5},"on":{"loss":0.5,"accuracy":21.5},"samples":5},"lr":0.1,"seconds":1,"samples_per_second":1,"evaluation_seconds":1,"data_wait_seconds":0,"boundaries":[]})";

class Metrics : public testing::Test {
 protected:
  void append(const std::string& text) {
    std::ofstream out(file_, std::ios::binary | std::ios::app);
    ASSERT_TRUE(out << text);
  }
  std::string line(const char* json) { return std::string(json) + "\n"; }

  test::TempDir dir_;
  std::filesystem::path file_ = dir_ / "metrics.jsonl";
};

TEST_F(Metrics, AreReportedOnceEach) {
  MetricsTail tail(file_);
  EXPECT_TRUE(tail.read_new().empty());
  append(line(kFirst) + line(kSecond));
  const auto epochs = tail.read_new();
  ASSERT_EQ(epochs.size(), 2U);
  EXPECT_EQ(epochs[0].done, 1);
  EXPECT_EQ(epochs[0].train_loss, 2.5);
  EXPECT_EQ(epochs[0].test->off.at(kAccuracy), 10.5);
  EXPECT_EQ(epochs[0].test->on.at(kAccuracy), 11.5);
  EXPECT_EQ(epochs[1].done, 2);
  EXPECT_TRUE(tail.read_new().empty());
}

TEST_F(Metrics, WaitForTheEndOfALine) {
  MetricsTail tail(file_);
  append(std::string(kFirst).substr(0, 30));
  EXPECT_TRUE(tail.read_new().empty());
  append(std::string(kFirst).substr(30));
  EXPECT_TRUE(tail.read_new().empty());
  append("\n");
  EXPECT_EQ(tail.read_new().size(), 1U);
}

TEST_F(Metrics, OfAnEarlierRunAreNotReported) {
  append(line(kFirst) + line(kSecond));
  MetricsTail tail(file_);
  EXPECT_TRUE(tail.read_new().empty());
  std::ofstream(file_, std::ios::trunc).close();  // begun anew
  EXPECT_TRUE(tail.read_new().empty());
  append(line(kFirst));
  EXPECT_EQ(tail.read_new().size(), 1U);
}

TEST_F(Metrics, ThatAreLeftAfterACutAreNotReportedAgain) {
  append(line(kFirst) + line(kSecond));
  MetricsTail tail(file_);
  test::write_file(file_, line(kFirst));
  EXPECT_TRUE(tail.read_new().empty());
  append(line(kSecond));
  ASSERT_EQ(tail.read_new().size(), 1U);
}

TEST_F(Metrics, PassOverWhatIsNoEpoch) {
  MetricsTail tail(file_);
  append("not JSON\n[]\n{\"epoch\":\"zero\"}\n" + line(kSecond));
  const auto epochs = tail.read_new();
  ASSERT_EQ(epochs.size(), 1U);
  EXPECT_EQ(epochs[0].done, 2);
}

}  // namespace
}  // namespace strait
