#include "strait/experiment/sweep.h"

#include <gtest/gtest.h>

#include "strait/base/error.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

class SweepFile : public testing::Test {
 protected:
  Sweep load(const std::string& text) {
    test::write_file(dir_ / "sweep.toml", text);
    return load_sweep(dir_ / "sweep.toml");
  }

  /// The error's message without the folder's name.
  std::string error_of(const std::string& text) {
    try {
      load(text);
    } catch (const InputError& error) {
      const std::string folder = dir_.path().string() + "/";
      std::string message = error.what();
      return message.starts_with(folder) ? message.substr(folder.size()) : message;
    }
    return "no error";
  }

  test::TempDir dir_;
};

TEST_F(SweepFile, MergesEachVariantOverTheInlineTables) {
  const auto sweep = load(R"(
name = "demo"
seed = 5
[train]
epochs = 2
[[variants]]
name = "a"
[[variants]]
name = "b"
seed = 6
[variants.train]
epochs = 3
optimizer.lr = 0.5
)");
  EXPECT_EQ(sweep.name, "demo");
  ASSERT_EQ(sweep.runs.size(), 2U);
  EXPECT_EQ(sweep.runs[0].name, "a");
  EXPECT_EQ(sweep.runs[0].seed, 5U);
  EXPECT_EQ(sweep.runs[0].train.epochs, 2);
  EXPECT_EQ(sweep.runs[1].name, "b");
  EXPECT_EQ(sweep.runs[1].seed, 6U);
  EXPECT_EQ(sweep.runs[1].train.epochs, 3);
  EXPECT_EQ(sweep.runs[1].train.optimizer.lr, 0.5);
}

TEST_F(SweepFile, BuildsOnAFile) {
  test::write_file(dir_ / "base.toml", "[train]\nepochs = 9\n");
  const auto sweep = load("name = \"s\"\nbase = \"base.toml\"\n[[variants]]\nname = \"a\"\n");
  EXPECT_EQ(sweep.runs.at(0).train.epochs, 9);
}

TEST_F(SweepFile, RunsEveryVariantForEverySeed) {
  const auto sweep =
      load("name = \"s\"\nseeds = [0, 7]\n[[variants]]\nname = \"a\"\n[[variants]]\nname = \"b\"\n");
  std::vector<std::string> names;
  for (const auto& run : sweep.runs) names.push_back(run.name);
  EXPECT_EQ(names, (std::vector<std::string>{"a-seed0", "a-seed7", "b-seed0", "b-seed7"}));
  EXPECT_EQ(sweep.runs[3].seed, 7U);
  const auto single = load("name = \"s\"\nseeds = [7]\n[[variants]]\nname = \"a\"\n");
  EXPECT_EQ(single.runs.at(0).name, "a");
  EXPECT_EQ(single.runs.at(0).seed, 7U);
}

TEST_F(SweepFile, SaysWhatIsWrong) {
  const std::string one = "[[variants]]\nname = \"a\"\n";
  const std::pair<std::string, std::string> rows[] = {
      {"name = \"s\"\n",
       "sweep.toml: variants: expected an array of tables, one [[variants]] a run, found none"},
      {"variants = []\n",
       "sweep.toml:1: variants: expected an array of tables, one [[variants]] a run, found an empty array"},
      {"variants = 3\n",
       "sweep.toml:1: variants: expected an array of tables, one [[variants]] a run, found 3"},
      {"variants = [3]\n",
       "sweep.toml:1: variants: expected an array of tables, one [[variants]] a run, found 3 in it"},
      {"[[variants]]\nseed = 3\n", "sweep.toml:1: variants: expected a name in each"},
      {"[[variants]]\nname = 3\n", "sweep.toml:2: name: expected a string, found 3"},
      {one + one, "sweep.toml:4: variants: expected each name once, found \"a\" twice"},
      {one + "seeds = [1]\n", "sweep.toml:3: unknown key \"seeds\"; a file with it is for strait sweep"},
      {one + "base = \"b.toml\"\n", "sweep.toml:3: unknown key \"base\" (did you mean \"name\"?)"},
      {one + "[variants.train]\nepoch = 1\n",
       "sweep.toml:4: unknown key \"train.epoch\" (did you mean \"train.epochs\"?)"},
      {one + "train.epochs = 0\n", "sweep.toml:3: train.epochs: expected an integer >= 1, found 0"},
      {"variant = 3\n" + one, "sweep.toml:1: unknown key \"variant\""},
      {"seeds = []\n" + one, "sweep.toml:1: seeds: expected an array of integers, found an empty array"},
      {"seeds = 3\n" + one, "sweep.toml:1: seeds: expected an array of integers, found 3"},
      {"seeds = [1, -2]\n" + one, "sweep.toml:1: seeds: expected integers >= 0, found -2"},
      {"seeds = [1, \"2\"]\n" + one, "sweep.toml:1: seeds: expected integers >= 0, found \"2\""},
      {"seeds = [1, 1]\n" + one, "sweep.toml:1: seeds: expected each once, found 1 twice"},
      {"seeds = [1]\n" + one + "seed = 2\n",
       "sweep.toml:4: seed: a variant cannot set it where the sweep has seeds"},
  };
  for (const auto& [text, message] : rows) EXPECT_EQ(error_of(text), message) << text;
}

}  // namespace
}  // namespace strait
