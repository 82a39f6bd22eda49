#include "tests/cli/text_runs.h"
#include "tests/support/equal_runs.h"

namespace strait {
namespace {

using test::TextRuns;

TEST_F(TextRuns, FourProcessesGiveTheBitsOfOne) {
  ASSERT_EQ(train("one").status, 0);
  const auto four = run({"launch", "-n", "4", "--", "train", config_, "--out", dir_ / "four"});
  ASSERT_EQ(four.status, 0) << four.err;
  test::expect_equal_runs(dir_ / "one", dir_ / "four");
}

TEST_F(TextRuns, FourProcessesGiveTheBitsOfOneInASubspaceWithABottleneck) {
  const std::vector<std::string> flags = {"--set", "model.subspace=4", "--set", "model.bottleneck=3"};
  ASSERT_EQ(train("one", flags).status, 0);
  std::vector<std::string> all = {"launch", "-n", "4", "--", "train", config_, "--out", dir_ / "four"};
  all.insert(all.end(), flags.begin(), flags.end());
  const auto four = run(all);
  ASSERT_EQ(four.status, 0) << four.err;
  test::expect_equal_runs(dir_ / "one", dir_ / "four");
}

}  // namespace
}  // namespace strait
