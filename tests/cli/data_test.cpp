#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>

#include "strait/data/registry.h"
#include "strait/transport/socket.h"
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
  EXPECT_THAT(check.err, testing::StartsWith("strait: " + empty.path().string()));
  EXPECT_THAT(check.err, HasSubstr("data_batch_1.bin: no such file"));
  EXPECT_THAT(check.err, HasSubstr("(0 of the 6 files of cifar10 are the official ones)"));
  for (const auto& file : data_info("cifar10").files) EXPECT_THAT(check.out, HasSubstr(file.path));
}

TEST(DataCheck, AFileThatIsNotTheOfficialOneFailsAndIsNamedWithBothSums) {
  const test::TempDir root;
  std::filesystem::create_directory(root / "gpt2");
  test::write_file(root / "gpt2/vocab.json", "{}");
  test::write_file(root / "gpt2/merges.txt", "a b\n");
  const auto check =
      test::run_process(STRAIT_PROGRAM, {"data", "check", "gpt2-tokenizer", "--root", root.path()});
  EXPECT_EQ(check.status, 2);
  EXPECT_THAT(check.out, HasSubstr("differs  " + (root / "gpt2/merges.txt").string()));
  EXPECT_EQ(check.err, "strait: " + (root / "gpt2/vocab.json").string() +
                           ": differs from the official file: sha256 sum "
                           "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a, expected "
                           "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783 "
                           "(0 of the 2 files of gpt2-tokenizer are the official ones)\n");
}

TEST(DataGet, SaysWhereTextCanBeFoundThatHasNoAddress) {
  const test::TempDir root;
  const auto get = test::run_process(STRAIT_PROGRAM, {"data", "get", "wikitext2", "--root", root.path()});
  EXPECT_EQ(get.status, 2);
  EXPECT_THAT(get.err, HasSubstr("Salesforce/wikitext (wikitext-2-raw-v1)"));
  EXPECT_THAT(get.err, HasSubstr("wikitext-2-raw/wiki.train.raw, wiki.valid.raw and wiki.test.raw"));
  EXPECT_EQ(std::ranges::count(get.err, '\n'), 1);
}

TEST(DataGet, ThatIsStoppedEndsAsOtherVerbsDoAndLeavesNothing) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const test::TempDir root;
    const Socket silent = listen_at("127.0.0.1", 0);
    const std::string mirror = "http://127.0.0.1:" + std::to_string(port_of(silent));
    test::Process get(STRAIT_PROGRAM, {"data", "get", "cifar10", "--root", root.path(), "--mirror", mirror},
                      {"no_proxy=127.0.0.1"});
    std::optional<Socket> connection;  // once it is there, the program waits for an answer
    while (!connection && !get.has_ended()) connection = accept_from(silent);
    get.send(signal);
    const auto result = get.wait(std::chrono::seconds(30));
    EXPECT_EQ(result.status, 130) << signal;
    EXPECT_EQ(result.out, "stopped; the same command fetches cifar10 from the beginning\n");
    EXPECT_EQ(result.err, "");
    EXPECT_TRUE(std::filesystem::is_empty(root.path()));
  }
}

}  // namespace
}  // namespace strait
