#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "fuzz/tokenizer_input.h"
#include "tests/support/process.h"
#include "tests/support/run_files.h"
#include "tests/support/temp_dir.h"

namespace strait::test {

/// A GPT-2 of two narrow blocks on a text of its own.
class TextRuns : public testing::Test {
 protected:
  static constexpr const char* kConfig = R"(name = "text"
[model]
kind = "gpt2"
layers = 2
heads = 2
width = 8
context = 16
vocab = 287
cuts = ["embed", "h.0", "h.1"]
[data]
kind = "text"
block = 16
batch_size = 4
[train]
epochs = 2
threads = 1
clip_norm = 1.0
optimizer = { kind = "adamw", lr = 1e-2 }
schedule = { kind = "linear", warmup_steps = 2 }
[pipeline]
micro_batches = 2
[compression]
activations = { codec = "topk:0.2" }
gradients = { codec = "topk:0.2" }
reuse_indices = true
)";

  TextRuns() {
    std::filesystem::create_directories(dir_ / "tokenizer");
    for (const auto& file : fuzz::small_tokenizer(fuzz::sample_merges())) {
      write_file(dir_ / "tokenizer" / file.name, file.text);
    }
    std::string text;
    for (int i = 0; i < 40; ++i) text += "the cat in the hat sat on the mat, " + std::to_string(i * i) + "\n";
    write_file(dir_ / "train.txt", text);
    write_file(dir_ / "test.txt", text.substr(0, 400));
    write_file(config_, kConfig);
  }

  /// The arguments, and where the texts are.
  std::vector<std::string> on_texts(std::vector<std::string> arguments) const {
    const std::vector<std::pair<std::string, std::string>> places = {{"data.tokenizer", dir_ / "tokenizer"},
                                                                     {"data.train_file", dir_ / "train.txt"},
                                                                     {"data.test_file", dir_ / "test.txt"}};
    for (const auto& [key, path] : places) {
      arguments.insert(arguments.end(), {"--set", key + "=\"" + path + "\""});
    }
    return arguments;
  }

  ProcessResult run(std::vector<std::string> arguments) const {
    return run_process(STRAIT_PROGRAM, on_texts(std::move(arguments)));
  }

  ProcessResult train(const std::string& out, std::vector<std::string> flags = {}) const {
    flags.insert(flags.begin(), {"train", config_, "--out", dir_ / out});
    return run(flags);
  }

  ProcessResult generate(std::vector<std::string> flags) const {
    flags.insert(flags.begin(), {"generate", config_, "--weights", dir_ / "run" / "model.safetensors"});
    return run(flags);
  }

  TempDir dir_;
  std::string config_ = dir_ / "text.toml";
};

}  // namespace strait::test
