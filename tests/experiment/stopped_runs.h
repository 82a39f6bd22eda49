#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "strait/experiment/run.h"
#include "tests/support/equal_runs.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace strait::test {

/// Asks to stop after so many batches of training and evaluation (-1: never), and remembers what was said.
class Stopper : public TrainObserver {
 public:
  explicit Stopper(int batches = -1) : left_(batches) {}
  void on_batch(int, const char*, int64_t, int64_t, double) override { --left_; }
  void on_note(const std::string& line) override { notes.push_back(line); }
  bool should_stop() override { return left_ == 0; }
  std::vector<std::string> notes;

 private:
  int left_;
};

/// Runs of a narrow network on drawn pictures, in one process, that are stopped and go on. An epoch has 4
/// batches of training and 2 of evaluation.
class StoppedRuns : public testing::Test {
 protected:
  static Config config_with(const std::vector<std::string>& overrides) {
    return parse_config(R"(name = "tiny"
seed = 7
[model]
width = 2
[data]
kind = "shapes"
train_limit = 70
test_limit = 30
batch_size = 20
[train]
epochs = 3
threads = 1
)",
                        "tiny.toml", overrides);
  }

  /// The run of this name in dir_, and into notes_ what it says.
  RunOutcome run(const Config& config, const std::string& name, Start start = Start::fresh, int batches = -1) {
    Stopper observer(batches);
    RunOutcome outcome = run_experiment(config, dir_ / name, start, observer);
    notes_ = observer.notes;
    return outcome;
  }

  std::string error_of(const Config& config, const std::string& name, Start start) {
    return test::error_of<InputError>([&] { run(config, name, start); });
  }

  void expect_equal_runs(const std::string& a, const std::string& b) const {
    test::expect_equal_runs(dir_ / a, dir_ / b);
  }

  std::vector<std::string> checkpoints(const std::string& name) const {
    return names_in(dir_ / name / "checkpoint");
  }

  /// Resumes, stopping after `batches` again and again, until the run is done; gives the number of stops.
  int resume_to_the_end(const Config& config, const std::string& name, int batches) {
    int stops = 0;
    while (run(config, name, Start::resume, batches).status == RunStatus::stopped) ++stops;
    return stops;
  }

  TempDir dir_;
  std::vector<std::string> notes_;
};

}  // namespace strait::test
