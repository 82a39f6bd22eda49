#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "fuzz/tokenizer_input.h"
#include "tests/experiment/stopped_runs.h"
#include "tests/support/variable.h"

namespace strait {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

TEST(ResumeData, MustBeTheRunsWhereverTheyLie) {
  const test::Variable no_cache("STRAIT_CACHE", "");
  const test::TempDir dir;
  const auto config_in = [&](const std::string& place) {
    const std::string folder = (dir / place).string();
    return parse_config(fmt::format(R"(
model = {{ kind = "gpt2", width = 8, heads = 2, layers = 2, context = 16, vocab = 300, cuts = ["h.0"] }}
data = {{ kind = "text", block = 16, batch_size = 4, tokenizer = "{0}", train_file = "{0}/text", test_file = "{0}/text" }}
train = {{ epochs = 2, threads = 1 }})",
                                    folder),
                        "text.toml");
  };
  const auto write = [&](const std::string& place, const std::string& text, const fuzz::Merges& merges) {
    fs::create_directory(dir / place);
    for (const auto& file : fuzz::small_tokenizer(merges)) test::write_file(dir / place / file.name, file.text);
    test::write_file(dir / place / "text", text);
  };
  std::string text;
  for (int i = 0; i < 100; ++i) text += fmt::format("{} bottles ", i);
  write("here", text, {});
  write("there", text, {});
  write("retold", text + " and more than a block of others", {});
  write("retokenized", text, {{"b", "o"}});
  test::Stopper three(3);
  EXPECT_EQ(run_experiment(config_in("here"), dir / "run", Start::fresh, three).status, RunStatus::stopped);
  TrainObserver silent;
  for (const std::string other : {"retold", "retokenized"}) {
    const auto resume = [&] { run_experiment(config_in(other), dir / "run", Start::resume, silent); };
    EXPECT_THAT(
        test::message_of<InputError>(resume),
        AllOf(HasSubstr("position.json: the run has other data ("), HasSubstr("--resume cannot change")));
  }
  EXPECT_EQ(run_experiment(config_in("there"), dir / "run", Start::resume, silent).status, RunStatus::done);
}

}  // namespace
}  // namespace strait
