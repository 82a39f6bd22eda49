#include "tests/cli/tiny_runs.h"

namespace strait {
namespace {

using Distributed = test::TinyRuns;

TEST_F(Distributed, OneLineSaysWhatSeveralProcessesNeed) {
  const std::string line =
      "strait: this strait was built with a LibTorch that comes without Gloo's headers, so that one process "
      "runs all stages; several need one that was built with Debian's libtorch-dev\n";
  std::vector<std::string> launch = {"launch", "-n", "4", "--"};
  const auto train = arguments("run");
  launch.insert(launch.end(), train.begin(), train.end());
  for (const auto& result :
       {test::run_process(STRAIT_PROGRAM, launch),
        test::run_process(STRAIT_PROGRAM, train, {"RANK=0", "WORLD_SIZE=4", "MASTER_ADDR=127.0.0.1"})}) {
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.err, line);
  }
  EXPECT_EQ(test::names_in(dir_.path()), std::vector<std::string>{"tiny.toml"});
}

}  // namespace
}  // namespace strait
