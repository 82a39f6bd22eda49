#include "tests/cli/tiny_runs.h"

namespace strait {
namespace {

class ClosedStreams : public test::TinyRuns {
 protected:
  /// The status of a training whose caller has closed streams, by the words of a shell.
  int train_with(const std::string& closed, const std::string& out) {
    const std::string words = "exec \"$0\" train \"$1\" --out \"$2\" " + closed;
    return test::run_process("/bin/sh", {"-c", words, STRAIT_PROGRAM, config_, dir_ / out}).status;
  }

  /// The bytes of the event file, which has the same records in every run.
  static uintmax_t events_size(const std::filesystem::path& run) {
    for (const auto& entry : std::filesystem::directory_iterator(run)) {
      if (entry.path().filename().string().starts_with("events.")) return entry.file_size();
    }
    return 0;
  }
};

TEST_F(ClosedStreams, NothingIsPrintedIntoTheFilesOfARun) {
  for (const std::string closed : {">&-", "<&- >&-", "<&- >&- 2>&-"}) {
    const std::string out = "run" + std::to_string(closed.size());
    EXPECT_EQ(train_with(closed, out), 0) << closed;
    expect_equal_runs(out, whole());
    EXPECT_EQ(status(out).at("status"), "done") << closed;
    EXPECT_EQ(events_size(dir_ / out), events_size(whole())) << closed;
  }
}

TEST_F(ClosedStreams, AnErrorKeepsItsStatus) {
  EXPECT_EQ(train_with("<&- >&- 2>&- --set train.epochs=0", "run"), 2);
  EXPECT_FALSE(std::filesystem::exists(dir_ / "run"));
}

}  // namespace
}  // namespace strait
