#include "strait/base/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace strait {
namespace {

TEST(Cores, AreThoseOfTheAffinity) {
  const auto cores = available_cores();
  ASSERT_FALSE(cores.empty());
  std::vector<int> narrowed;
  std::thread([&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cores.back(), &set);
    ASSERT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
    narrowed = available_cores();
  }).join();
  EXPECT_EQ(narrowed, std::vector<int>{cores.back()});
  EXPECT_EQ(available_cores(), cores);
}

TEST(Cores, AreSharedOutWithoutOverlapOrRest) {
  const std::vector<int> cores = {2, 3, 5, 7, 11};
  for (size_t count = 1; count <= cores.size(); ++count) {
    std::vector<int> all;
    for (size_t index = 0; index < count; ++index) {
      const auto share = share_of(cores, index, count);
      EXPECT_GE(share.size(), cores.size() / count);
      EXPECT_LE(share.size(), (cores.size() + count - 1) / count);
      all.insert(all.end(), share.begin(), share.end());
    }
    EXPECT_EQ(all, cores) << count;
  }
}

}  // namespace
}  // namespace strait
