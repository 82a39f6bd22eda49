#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/sample_sweep.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using testing::HasSubstr;

TEST(Report, WritesThePageAndTheTablesBesideIt) {
  const test::TempDir dir;
  test::write_sample_sweep(dir / "sweep");
  const std::string page = dir / "out.html";
  const auto run = test::run_process(STRAIT_PROGRAM, {"report", dir / "sweep", "--out", page});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, page + "\n");
  EXPECT_THAT(test::read_file(page), testing::StartsWith("<!doctype html>"));
  EXPECT_THAT(test::read_file(dir / "out.md"), HasSubstr("\n| fw4-bw2 | "));
  EXPECT_THAT(test::read_file(dir / "out.csv"), HasSubstr("\r\ntable1,fw4-bw2,accuracy,"));
  EXPECT_THAT(test::read_file(dir / "out-bytes.csv"),
              HasSubstr("\r\ntable1,none,layer1,activations,26214400,"));
}

TEST(Report, AFolderThatCannotBeWrittenToIsAFailure) {
  const test::TempDir dir;
  test::write_sample_sweep(dir / "sweep");
  const auto run =
      test::run_process(STRAIT_PROGRAM, {"report", dir / "sweep", "--out", dir / "no/such/page.html"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("no/such/page.md: cannot be written: No such file or directory"));
}

}  // namespace
}  // namespace strait
