#include "strait/base/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cmath>
#include <thread>

#include "tests/support/temp_dir.h"

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

TEST(Cores, QuotaIsTheSmallestOfTheGroupAndThoseAboveIt) {
  const test::TempDir root;
  std::filesystem::create_directories(root / "outer/inner");
  const std::string groups = "0::/outer/inner\n";
  EXPECT_TRUE(std::isinf(core_quota(root.path(), groups))) << "no file says any";
  test::write_file(root / "outer/inner/cpu.max", "max 100000\n");
  EXPECT_TRUE(std::isinf(core_quota(root.path(), groups)));
  test::write_file(root / "outer/cpu.max", "250000 100000\n");
  EXPECT_EQ(core_quota(root.path(), groups), 2.5);
  test::write_file(root / "cpu.max", "400000 100000\n");
  EXPECT_EQ(core_quota(root.path(), groups), 2.5);
  test::write_file(root / "outer/inner/cpu.max", "50000 100000\n");
  EXPECT_EQ(core_quota(root.path(), groups), 0.5);
  EXPECT_EQ(core_quota(root.path(), "0::/\n"), 4) << "as in a container";
}

TEST(Cores, QuotaOfTheFirstVersionOfTheInterface) {
  const test::TempDir root;
  const std::string groups = "4:memory:/a\n3:cpu,cpuacct:/a\n";
  std::filesystem::create_directories(root / "cpu");
  test::write_file(root / "cpu/cpu.cfs_period_us", "100000\n");
  test::write_file(root / "cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_TRUE(std::isinf(core_quota(root.path(), groups)));
  test::write_file(root / "cpu/cpu.cfs_quota_us", "150000\n");
  EXPECT_EQ(core_quota(root.path(), groups), 1.5);
}

TEST(Cores, AtLeastOneIsUsable) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_LE(usable_cores(), static_cast<int>(available_cores().size()));
}

TEST(Cores, LoadOfOthersIsOfWorkThatGoesOn) {
  EXPECT_EQ(load_of_others("3.50 2.00 1.00 6/120 4711", 1), 3.5);
  EXPECT_EQ(load_of_others("3.50 2.00 1.00 2/120 4711", 1), 1) << "most of it has ended";
  EXPECT_EQ(load_of_others("3.50 2.00 1.00 1/120 4711", 1), 0);
  EXPECT_EQ(load_of_others("0.10 0.00 0.00 9/120 4711", 1), 0.1) << "most of it has just begun";
  EXPECT_EQ(load_of_others("4.00 4.00 4.00 4/120 4711", 4), 0) << "of processes that train together";
  EXPECT_EQ(load_of_others("", 1), 0);
}

}  // namespace
}  // namespace strait
