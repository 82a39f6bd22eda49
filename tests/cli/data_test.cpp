#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strait/data/registry.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using testing::HasSubstr;

TEST(DataInfo, NamesFilesAndSums) {
  for (const auto& data : official_data()) {
    const auto info = test::run_process(STRAIT_PROGRAM, {"data", "info", data.name});
    EXPECT_EQ(info.status, 0) << info.err;
    EXPECT_THAT(info.out, HasSubstr(data.title));
    for (const auto& file : data.files) EXPECT_THAT(info.out, HasSubstr(file.sum.hex));
  }
}

TEST(DataCheck, ReportsEachFileAndFailsWhenOneIsMissing) {
  const test::TempDir empty;
  const auto check = test::run_process(STRAIT_PROGRAM, {"data", "check", "cifar10", "--root", empty.path()});
  EXPECT_EQ(check.status, 2);
  EXPECT_THAT(check.err, testing::StartsWith("strait: cifar10: "));
  EXPECT_THAT(check.err, HasSubstr(empty.path().string()));
  for (const auto& file : data_info("cifar10").files) EXPECT_THAT(check.out, HasSubstr(file.path));
}

}  // namespace
}  // namespace strait
