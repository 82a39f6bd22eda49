#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "tests/support/equal_runs.h"
#include "tests/support/process.h"
#include "tests/support/run_files.h"

namespace strait::test {

/// Runs of a few steps, of a narrow network on drawn pictures, in a folder of their own.
class TinyRuns : public testing::Test {
 protected:
  static constexpr const char* kConfig = R"(name = "tiny"
seed = 7
[model]
width = 4
[data]
kind = "shapes"
train_limit = 160
test_limit = 40
batch_size = 20
[train]
epochs = 3
evaluate_every = 3
threads = 1
[pipeline]
micro_batches = 2
[compression]
activations = { codec = "quant:4,scope=sample", feedback = "ef21" }
gradients = { codec = "topk:0.2", feedback = "ef" }
)";

  TinyRuns() { write_file(config_, kConfig); }

  /// An undisturbed run of one process, made once for all tests.
  static std::string whole() {
    static const TempDir dir;
    static const bool made = [] {
      write_file(dir / "tiny.toml", kConfig);
      return run_process(STRAIT_PROGRAM, {"train", dir / "tiny.toml", "--out", dir / "run"}).status == 0;
    }();
    EXPECT_TRUE(made);
    return dir / "run";
  }

  std::vector<std::string> arguments(const std::string& out, const std::vector<std::string>& flags = {}) const {
    std::vector<std::string> all = {"train", config_, "--out", dir_ / out};
    all.insert(all.end(), flags.begin(), flags.end());
    return all;
  }

  ProcessResult train(const std::string& out, const std::vector<std::string>& flags = {}) const {
    return run_process(STRAIT_PROGRAM, arguments(out, flags));
  }

  /// Runs of dir_, or paths.
  void expect_equal_runs(const std::string& a, const std::string& b) const {
    test::expect_equal_runs(dir_ / a, dir_ / b);
  }

  std::vector<std::string> checkpoints(const std::string& out) const {
    return names_in(dir_ / out / "checkpoint");
  }

  /// Until the run has another checkpoint than before, or `ended` says that there will be none.
  template <class Ended>
  void wait_for_checkpoint(const std::string& out, const std::vector<std::string>& before,
                           const Ended& ended) const {
    const auto is_new = [&](const std::string& name) {
      return name.starts_with("epoch-") && !name.ends_with(".partial") &&
             std::ranges::find(before, name) == before.end();
    };
    while (!ended()) {
      std::error_code ignored;  // the folder changes meanwhile
      for (std::filesystem::directory_iterator item(dir_ / out / "checkpoint", ignored), end; item != end;
           item.increment(ignored)) {
        if (is_new(item->path().filename().string())) return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  nlohmann::json status(const std::string& out) const {
    return nlohmann::json::parse(read_file(dir_ / out / "status.json"));
  }

  TempDir dir_;
  std::string config_ = dir_ / "tiny.toml";
};

}  // namespace strait::test
