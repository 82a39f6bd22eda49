#include "strait/data/loader.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>

#include "strait/base/error.h"

namespace strait {
namespace {

using std::chrono::milliseconds;

/// A data set that counts its batches, takes its time and can fail.
class SlowData final : public Dataset {
 public:
  explicit SlowData(milliseconds pause, int64_t fails_at = -1) : pause_(pause), fails_at_(fails_at) {}

  int64_t size() const override { return 1000; }

  Batch batch(std::span<const int64_t> ids, std::optional<uint64_t> key) const override {
    if (made_ == fails_at_) throw InputError("batch {} cannot be read", fails_at_);
    std::this_thread::sleep_for(pause_);
    ++made_;
    last_key_ = key.value_or(0);
    return {
        at::zeros({static_cast<int64_t>(ids.size()), 1}, at::kFloat), at::Tensor(), {ids.begin(), ids.end()}};
  }

  int64_t made() const { return made_; }
  uint64_t last_key() const { return last_key_; }

 private:
  milliseconds pause_;
  int64_t fails_at_;
  mutable std::atomic<int64_t> made_{0};
  mutable std::atomic<uint64_t> last_key_{0};
};

Loader::Pass pass(int64_t samples, int64_t batch_size, int64_t ahead = 3) {
  Loader::Pass result;
  result.order.resize(static_cast<size_t>(samples));
  std::iota(result.order.rbegin(), result.order.rend(), 0);
  result.batch_size = batch_size;
  result.ahead = ahead;
  return result;
}

/// The ids of all batches, one after another, and the batch sizes.
std::pair<std::vector<int64_t>, std::vector<size_t>> drain(Loader& loader, milliseconds pause) {
  std::vector<int64_t> ids;
  std::vector<size_t> sizes;
  while (auto batch = loader.next()) {
    ids.insert(ids.end(), batch->ids.begin(), batch->ids.end());
    sizes.push_back(batch->ids.size());
    std::this_thread::sleep_for(pause);
  }
  return {ids, sizes};
}

TEST(Loader, GivesEveryBatchInOrderAtAnySpeed) {
  for (const auto& [producer, consumer] : {std::pair{0, 0}, std::pair{3, 0}, std::pair{0, 3}}) {
    const auto data = std::make_shared<SlowData>(milliseconds(producer));
    auto plan = pass(25, 10);
    plan.augmentation_key = 77;
    const auto order = plan.order;
    Loader loader(data, plan);
    EXPECT_EQ(loader.batches(), 3);
    const auto [ids, sizes] = drain(loader, milliseconds(consumer));
    EXPECT_EQ(ids, order);
    EXPECT_EQ(sizes, (std::vector<size_t>{10, 10, 5}));
    EXPECT_EQ(data->last_key(), 77U);
    EXPECT_FALSE(loader.next().has_value());
  }
}

TEST(Loader, NumberOfBatches) {
  const auto data = std::make_shared<SlowData>(milliseconds(0));
  EXPECT_EQ(Loader(data, pass(0, 10)).batches(), 0);
  EXPECT_EQ(Loader(data, pass(10, 10)).batches(), 1);
  EXPECT_EQ(Loader(data, pass(11, 10)).batches(), 2);
  Loader empty(data, pass(0, 10));
  EXPECT_FALSE(empty.next().has_value());
}

TEST(Loader, WorksAheadAndNoFurther) {
  const auto data = std::make_shared<SlowData>(milliseconds(0));
  Loader loader(data, pass(100, 1, 4));
  for (int tries = 0; tries < 1000 && data->made() < 4; ++tries) std::this_thread::sleep_for(milliseconds(1));
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_EQ(data->made(), 4);
  ASSERT_TRUE(loader.next().has_value());
  for (int tries = 0; tries < 1000 && data->made() < 5; ++tries) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(data->made(), 5);
}

TEST(Loader, CountsTheTimeThatTheConsumerWaited) {
  Loader slow(std::make_shared<SlowData>(milliseconds(20)), pass(3, 1));
  drain(slow, milliseconds(0));
  EXPECT_GT(slow.waited_seconds(), 0.04);
  EXPECT_LT(slow.waited_seconds(), 30.0);
}

TEST(Loader, StopsEarly) {
  const auto data = std::make_shared<SlowData>(milliseconds(1));
  const auto begin = std::chrono::steady_clock::now();
  { Loader unread(data, pass(100000, 1, 3)); }
  {
    Loader partly(data, pass(100000, 1, 3));
    partly.next();
  }
  {
    Loader full(data, pass(100000, 1, 3));  // waits for room when it is told to stop
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_LT(data->made(), 200);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(Loader, PassesOnWhatTheDataSetThrows) {
  Loader loader(std::make_shared<SlowData>(milliseconds(0), 2), pass(10, 1));
  EXPECT_TRUE(loader.next().has_value());
  EXPECT_TRUE(loader.next().has_value());
  for (int again = 0; again < 2; ++again) {
    try {
      loader.next();
      FAIL() << "no error";
    } catch (const InputError& error) {
      EXPECT_STREQ(error.what(), "batch 2 cannot be read");
    }
  }
}

TEST(Loader, AFailureThatNobodyAsksForIsDropped) {
  const Loader loader(std::make_shared<SlowData>(milliseconds(0), 0), pass(10, 1));
  EXPECT_EQ(loader.batches(), 10);
}

TEST(Loader, SizesMustBePositive) {
  const auto data = std::make_shared<SlowData>(milliseconds(0));
  EXPECT_THROW(Loader(data, pass(10, 0)), InternalError);
  EXPECT_THROW(Loader(data, pass(10, 1, 0)), InternalError);
}

}  // namespace
}  // namespace strait
