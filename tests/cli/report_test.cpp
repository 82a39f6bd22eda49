#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/cli/page_data.h"
#include "tests/report/sample_sweep.h"
#include "tests/support/process.h"
#include "tests/support/run_files.h"
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
  const auto runs = test::page_data_of(page).at("tables").at(0).at("variants").at(0).at("runs");
  EXPECT_EQ(runs.at(0).at("timed").size(), 0U) << "these runs have no stage times";
  EXPECT_THAT(test::read_file(dir / "out.md"), HasSubstr("\n| fw4-bw2 | "));
  EXPECT_THAT(test::read_file(dir / "out.csv"), HasSubstr("\r\ntable1,fw4-bw2,accuracy,"));
  EXPECT_THAT(test::read_file(dir / "out-bytes.csv"),
              HasSubstr("\r\ntable1,none,layer1,activations,26214400,"));
}

TEST(Report, WritesLatexWhereItIsAskedFor) {
  const test::TempDir dir;
  test::write_sample_sweep(dir / "sweep");
  const auto run = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"report", dir / "sweep", "--out", dir / "out.html", "--title", "Mine"});
    const auto ended = test::run_process(STRAIT_PROGRAM, flags);
    EXPECT_EQ(ended.status, 0) << ended.err;
  };
  run({});
  EXPECT_FALSE(std::filesystem::exists(dir / "out.tex"));
  EXPECT_THAT(test::read_file(dir / "out.html"), HasSubstr("<title>Mine – strait report</title>"));
  EXPECT_THAT(test::read_file(dir / "out.md"), testing::StartsWith("# Mine\n"));
  run({"--latex"});
  EXPECT_THAT(test::read_file(dir / "out.tex"), HasSubstr("\nfw4-bw2 & $"));
  run({"--latex", dir / "other.tex"});
  EXPECT_EQ(test::read_file(dir / "other.tex"), test::read_file(dir / "out.tex"));
}

/// Such as a name that another program, or an earlier strait, gives to what it writes.
TEST(Report, LeavesTheFilesOfOthersAlone) {
  const test::TempDir dir;
  test::write_sample_sweep(dir / "sweep");
  for (const char* name : {"out.html.partial", "out.md.partial"}) test::write_file(dir / name, "another's");
  const auto run = test::run_process(STRAIT_PROGRAM, {"report", dir / "sweep", "--out", dir / "out.html"});
  EXPECT_EQ(run.status, 0) << run.err;
  for (const char* name : {"out.html.partial", "out.md.partial"})
    EXPECT_EQ(test::read_file(dir / name), "another's");
  EXPECT_EQ(test::names_in(dir.path()).size(), 7U) << "the sweep, two files of others and four of the report";
}

TEST(Report, AFolderThatCannotBeWrittenToIsWrongInput) {
  const test::TempDir dir;
  test::write_sample_sweep(dir / "sweep");
  const auto run =
      test::run_process(STRAIT_PROGRAM, {"report", dir / "sweep", "--out", dir / "no/such/page.html"});
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.err, "strait: --out: " + (dir / "no/such/page.html").string() +
                         ": cannot be written: No such file or directory\n");
}

TEST(Report, AFileBesideThePageThatCannotBeWrittenIsWrongInputToo) {
  const test::TempDir dir;
  test::write_sample_sweep(dir / "sweep");
  for (const char* name : {"out.md", "out.csv", "out-bytes.csv", "out.tex"}) {
    std::filesystem::create_directory(dir / name);
    const auto run =
        test::run_process(STRAIT_PROGRAM, {"report", dir / "sweep", "--out", dir / "out.html", "--latex"});
    EXPECT_EQ(run.status, 2);
    EXPECT_EQ(run.err,
              "strait: --out: " + (dir / name).string() + ": expected the name of a file, found a folder\n");
    std::filesystem::remove(dir / name);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 1) << "nothing is written";
  }
}

TEST(Report, APipeInPlaceOfAFileIsNamedAtOnce) {
  const test::TempDir dir;
  test::write_run(dir / "run", "name", 0, "running", "");
  std::filesystem::remove(dir / "run/config.toml");
  ASSERT_EQ(mkfifo((dir / "run/config.toml").c_str(), 0600), 0);
  test::Process report(STRAIT_PROGRAM, {"report", dir / "run", "--out", dir / "page.html"});
  const auto ended = report.wait(std::chrono::minutes(1));  // it would wait for ever
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(ended.err, HasSubstr("config.toml: expected a file, found a pipe"));
}

TEST(Report, ControlCharactersNeverReachTheTerminal) {
  const test::TempDir dir;
  const std::string folder = dir / "\u009b2J\x1b[1m\n";
  test::write_run(folder, "name", 0, "running", "");
  const auto page = test::run_process(STRAIT_PROGRAM, {"report", folder, "--out", folder + "/page.html"});
  ASSERT_EQ(page.status, 0) << page.err;
  EXPECT_THAT(page.out, testing::EndsWith("/\\u009b2J\\u001b[1m\n/page.html\n"));
  test::write_file(folder + "/status.json", "{");
  const auto failed = test::run_process(STRAIT_PROGRAM, {"report", folder, "--out", folder + "/page.html"});
  EXPECT_EQ(failed.status, 2);
  EXPECT_THAT(failed.err, testing::EndsWith("/\\u009b2J\\u001b[1m /status.json: is not JSON (at byte 2)\n"));
}

}  // namespace
}  // namespace strait
