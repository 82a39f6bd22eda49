#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

TEST(Keys, AShellTakesTheLineThatIsPrinted) {
  const test::TempDir dir;
  for (const char* name : {"key", "my key's $HOME"}) {
    const std::string file = dir / name;
    const auto made = test::run_process(STRAIT_PROGRAM, {"keys", file});
    ASSERT_EQ(made.status, 0) << made.err;
    const std::string line = made.out.substr(made.out.find("    export "));
    const auto shell = test::run_process("/bin/sh", {"-c", line + "cat \"$STRAIT_SECRET_FILE\""});
    EXPECT_EQ(shell.out, test::read_file(file)) << line;
  }
}

}  // namespace
}  // namespace strait
