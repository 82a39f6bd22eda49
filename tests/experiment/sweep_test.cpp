#include "strait/experiment/sweep.h"

#include <gtest/gtest.h>

#include "strait/base/error.h"
#include "strait/experiment/sweep_grid.h"
#include "tests/support/errors.h"
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
  EXPECT_EQ(sweep.runs[0].config.name, "a");
  EXPECT_EQ(sweep.runs[0].config.seed, 5U);
  EXPECT_EQ(sweep.runs[0].config.train.epochs, 2);
  EXPECT_EQ(sweep.runs[1].config.name, "b");
  EXPECT_EQ(sweep.runs[1].config.seed, 6U);
  EXPECT_EQ(sweep.runs[1].config.train.epochs, 3);
  EXPECT_EQ(sweep.runs[1].config.train.optimizer.lr, 0.5);
}

TEST_F(SweepFile, AVariantHasBoundariesOfItsOwn) {
  const auto sweep = load(R"(
name = "demo"
compression.boundaries = [{ name = "layer1", activations = { codec = "quant:8" } }]
[[variants]]
name = "a"
[[variants]]
name = "b"
[[variants.compression.boundaries]]
name = "layer2"
gradients = { codec = "fp16", feedback = "ef" }
)");
  ASSERT_EQ(sweep.runs.size(), 2U);
  const auto& a = sweep.runs[0].config.compression;
  EXPECT_EQ(a.at("layer1"), (BoundaryScheme{{"quant:8", "none"}, {}}));
  EXPECT_EQ(a.at("layer2"), BoundaryScheme{});
  const auto& b = sweep.runs[1].config.compression;
  EXPECT_EQ(b.at("layer1"), BoundaryScheme{});
  EXPECT_EQ(b.at("layer2"), (BoundaryScheme{{}, {"fp16", "ef"}}));
}

TEST_F(SweepFile, BuildsOnAFile) {
  test::write_file(dir_ / "base.toml", "[train]\nepochs = 9\n");
  const auto sweep = load("name = \"s\"\nbase = \"base.toml\"\n[[variants]]\nname = \"a\"\n");
  EXPECT_EQ(sweep.runs.at(0).config.train.epochs, 9);
}

TEST_F(SweepFile, RunsEveryVariantForEverySeed) {
  const auto sweep = load(
      "name = \"s\"\nseeds = [0, 7]\n[[variants]]\nname = \"a\"\n[[variants]]\nname = \"b\"\n"
      "train.epochs = 3\n");
  std::vector<std::string> names;
  for (const auto& run : sweep.runs) names.push_back(run.config.name);
  EXPECT_EQ(names, (std::vector<std::string>{"a-seed0", "a-seed7", "b-seed0", "b-seed7"}));
  EXPECT_EQ(sweep.runs[3].config.seed, 7U);
  EXPECT_EQ(sweep.runs[3].variant, "b");
  const auto single = load("name = \"s\"\nseeds = [7]\n[[variants]]\nname = \"a\"\n");
  EXPECT_EQ(single.runs.at(0).config.name, "a");
  EXPECT_EQ(single.runs.at(0).config.seed, 7U);
}

TEST_F(SweepFile, HasATitleAndPublishedFiguresThatChangeNoRun) {
  const auto plain = load("name = \"s\"\n[[variants]]\nname = \"a\"\n");
  EXPECT_EQ(plain.title, "s");
  EXPECT_FALSE(plain.runs.at(0).paper.has_value());
  const auto sweep = load(
      "name = \"s\"\ntitle = \"The table\"\n"
      "[[variants]]\nname = \"a\"\npaper = { off = 93, on = 92.95 }\n");
  EXPECT_EQ(sweep.title, "The table");
  ASSERT_TRUE(sweep.runs.at(0).paper.has_value());
  EXPECT_EQ(sweep.runs[0].paper->off, 93.0);
  EXPECT_EQ(sweep.runs[0].paper->on, 92.95);
  EXPECT_EQ(sweep.runs[0].config, plain.runs[0].config);
}

TEST_F(SweepFile, PublishedFiguresOfTextArePerplexities) {
  const auto sweep = load(
      "model.kind = \"gpt2\"\ndata.kind = \"wikitext2\"\n[[variants]]\nname = \"a\"\npaper = { on = 2990.16 "
      "}\n");
  ASSERT_TRUE(sweep.runs.at(0).paper.has_value());
  EXPECT_EQ(sweep.runs[0].paper->off, std::nullopt) << "the table does not have it";
  EXPECT_EQ(sweep.runs[0].paper->on, 2990.16);
}

TEST_F(SweepFile, ItsRunsAreFoundByVariantAndSeed) {
  const auto sweep = load(
      "name = \"s\"\nseeds = [0, 1]\n[[variants]]\nname = \"none\"\n"
      "[[variants]]\nname = \"long\"\ntrain.epochs = 300\n");
  const auto places = [&](const std::vector<std::string>& names) { return runs_of(sweep, names); };
  EXPECT_EQ(places({}), (std::vector<size_t>{0, 1, 2, 3}));
  EXPECT_EQ(places({"long"}), (std::vector<size_t>{2, 3}));
  EXPECT_EQ(places({"long", "none"}), (std::vector<size_t>{0, 1, 2, 3}));
  EXPECT_EQ(runs_of(sweep, {}, std::vector<uint64_t>{1}), (std::vector<size_t>{1, 3}));
  EXPECT_EQ(runs_of(sweep, std::vector<std::string>{"long"}, std::vector<uint64_t>{0}),
            (std::vector<size_t>{2}));
  try {
    runs_of(sweep, {}, std::vector<uint64_t>{1, 2});
    FAIL() << "found a seed that is not there";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "sweep s has no run with seed 2");
  }
  try {
    places({"none", "lnog"});
    FAIL() << "found a variant that is not there";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "sweep s has no variant \"lnog\" (did you mean \"long\"?); expected one of: none, long");
  }
}

TEST_F(SweepFile, RefusesAVariantWithTheSeedOfAnother) {
  const auto sweep =
      load("name = \"s\"\n[[variants]]\nname = \"a\"\nseed = 1\n[[variants]]\nname = \"b\"\nseed = 3\n");
  const std::vector<std::string> a = {"a"};
  EXPECT_EQ(runs_of(sweep, a, std::vector<uint64_t>{1, 3}), (std::vector<size_t>{0}));
  try {
    runs_of(sweep, a, std::vector<uint64_t>{3});
    FAIL() << "found a run that is not there";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "sweep s has no run of a variant among a with a seed among 3");
  }
}

TEST_F(SweepFile, CrossesEveryVariantWithItsGrid) {
  const auto sweep = load(R"(
seeds = [0, 1]
[grid]
train.optimizer.lr = [1e-4, 0.5]
data.batch_size = [50, 100]
[[variants]]
name = "a"
[[variants]]
name = "b"
compression.gradients.codec = "quant:4"
train.epochs = 3
)");
  ASSERT_EQ(sweep.runs.size(), 16U);
  std::vector<std::string> names;
  for (const auto& run : sweep.runs) names.push_back(run.config.name);
  EXPECT_EQ(std::vector(names.begin(), names.begin() + 4),
            (std::vector<std::string>{"a-batch_size-50-lr-0.0001-seed0", "a-batch_size-50-lr-0.0001-seed1",
                                      "a-batch_size-50-lr-0.5-seed0", "a-batch_size-50-lr-0.5-seed1"}));
  const auto& last = sweep.runs.back();
  EXPECT_EQ(last.variant, "b-batch_size-100-lr-0.5");
  EXPECT_EQ(last.config.train.optimizer.lr, 0.5);
  EXPECT_EQ(last.config.data.batch_size, 100);
  EXPECT_EQ(last.config.train.epochs, 3);
  EXPECT_EQ(last.config.compression.gradients.codec, "quant:4");
  EXPECT_EQ(sweep.runs.front().config.compression.gradients.codec, "none");
}

TEST_F(SweepFile, TheNameOfAVariantMeansAllItsPointsOfTheGrid) {
  const auto sweep = load(R"(
name = "s"
seeds = [0, 1]
grid.data.batch_size = [50, 100]
[[variants]]
name = "fw4"
[[variants]]
name = "bw8"
compression.gradients.codec = "quant:8"
)");
  const auto places = [&](const std::vector<std::string>& names) { return runs_of(sweep, names); };
  EXPECT_EQ(sweep.runs.at(4).row, "bw8");
  EXPECT_EQ(places({"bw8"}), (std::vector<size_t>{4, 5, 6, 7}));
  EXPECT_EQ(places({"bw8-batch_size-100"}), (std::vector<size_t>{6, 7}));
  EXPECT_EQ(places({"bw8", "fw4-batch_size-50", "bw8-batch_size-50"}), (std::vector<size_t>{0, 1, 4, 5, 6, 7}));
  EXPECT_EQ(runs_of(sweep, std::vector<std::string>{"bw8"}, std::vector<uint64_t>{1}),
            (std::vector<size_t>{5, 7}));
  EXPECT_EQ(test::message_of<InputError>([&] { places({"wf4"}); }),
            "sweep s has no variant \"wf4\" (did you mean \"fw4\"?); expected one of: fw4, fw4-batch_size-50, "
            "fw4-batch_size-100, bw8, bw8-batch_size-50, bw8-batch_size-100");

  const auto alone = load("name = \"s\"\ngrid.train.epochs = [1, 2]\n");
  EXPECT_EQ(alone.runs.at(0).row, "");
  EXPECT_EQ(test::message_of<InputError>([&] { runs_of(alone, std::vector<std::string>{""}); }),
            "sweep s has no variant \"\"; expected one of: epochs-1, epochs-2");
}

TEST_F(SweepFile, AGridAloneHasItsPointsAsVariants) {
  const auto sweep = load(R"(
name = "codecs"
[grid.compression]
activations.codec = ["none", "quant:2,scope=block:64"]
gradients.codec = ["topk:0.1"]
)");
  EXPECT_EQ(sweep.name, "codecs");
  ASSERT_EQ(sweep.runs.size(), 2U);
  EXPECT_EQ(sweep.runs[0].config.name, "activations.codec-none-gradients.codec-topk-0.1");
  EXPECT_EQ(sweep.runs[1].config.name, "activations.codec-quant-2-scope-block-64-gradients.codec-topk-0.1");
  EXPECT_EQ(sweep.runs[1].config.compression.activations.codec, "quant:2,scope=block:64");
  EXPECT_EQ(load("grid.train.optimizer.betas = [[0.9, 0.99], [0.5, 0.9]]\ntrain.optimizer.kind = \"adamw\"\n")
                .runs[1]
                .variant,
            "betas-0.5-0.9");
}

TEST_F(SweepFile, SaysWhatIsWrong) {
  const std::string one = "[[variants]]\nname = \"a\"\n";
  const std::pair<std::string, std::string> rows[] = {
      {"name = \"s\"\n",
       "sweep.toml: variants: expected an array of tables, one [[variants]] per run, found none"},
      {"variants = []\n",
       "sweep.toml:1: variants: expected an array of tables, one [[variants]] per run, found an empty array"},
      {"variants = 3\n",
       "sweep.toml:1: variants: expected an array of tables, one [[variants]] per run, found 3"},
      {"variants = [3]\n",
       "sweep.toml:1: variants: expected an array of tables, one [[variants]] per run, found 3 in it"},
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
      {"title = 3\n" + one, "sweep.toml:1: title: expected a text, found 3"},
      {"title = \"\"\n" + one, "sweep.toml:1: title: expected a text, found \"\""},
      {one + "title = \"a\"\n", "sweep.toml:3: unknown key \"title\"; a file with it is for strait sweep"},
      {one + "paper = 93.1\n", "sweep.toml:3: paper: expected { off = ..., on = ... }, found 93.1"},
      {one + "paper = { off = 93.1 }\n", "sweep.toml:3: paper.on: expected a percentage, found none"},
      {one + "paper = { off = \"93\", on = 1 }\n",
       "sweep.toml:3: paper.off: expected a percentage, found \"93\""},
      {one + "paper = { off = 93, on = 101 }\n", "sweep.toml:3: paper.on: expected a percentage, found 101"},
      {one + "paper = { off = 93, on = nan }\n", "sweep.toml:3: paper.on: expected a percentage, found nan"},
      {one + "model.kind = \"gpt2\"\ndata.kind = \"wikitext2\"\npaper = { off = 21.01, on = 0.5 }\n",
       "sweep.toml:5: paper.on: expected a perplexity, found 0.5"},
      {one + "paper = { off = 93, on = 92, of = 1 }\n",
       "sweep.toml:3: paper: expected off and on alone, found \"of\""},
      {one + "[[variants]]\nname = \"b\"\n",
       "sweep.toml: variants: expected runs that differ, found \"a\" and \"b\", which are equal but for keys "
       "that change nothing that is computed: name"},
      {one + "[[variants]]\nname = \"b\"\npipeline.link = \"20Mbps\"\nnetworks = [{ name = \"n\", bandwidth = "
             "\"1Mbps\" }]\n",
       "sweep.toml: variants: expected runs that differ, found \"a\" and \"b\", which are equal but for keys "
       "that change nothing that is computed: name, networks, pipeline.link"},
      {"seeds = [1, 12345]\n[[variants]]\nname = \"" + std::string(91, 'a') + "\"\n",
       "sweep.toml:3: name: expected the name of a folder, 1 to 100 letters, digits and any of ._+- that begin "
       "with "
       "no . or -, found \"" +
           std::string(91, 'a') + "-seed12345\""},
      {"grid = 3\n" + one, "sweep.toml:1: grid: expected a table of keys, each with a list of values, found 3"},
      {"grid = {}\n" + one,
       "sweep.toml:1: grid: expected a table of keys, each with a list of values, found an empty table"},
      {"grid.train.epochs = 3\n" + one, "sweep.toml:1: grid.train.epochs: expected a list of values, found 3"},
      {"grid.train = {}\n" + one, "sweep.toml:1: grid.train: expected a list of values, found a table"},
      {"grid.train.epochs = []\n" + one,
       "sweep.toml:1: grid.train.epochs: expected a list of values, found an empty array"},
      {"grid.train.epochs = [1, \"2\"]\n" + one,
       "sweep.toml:1: train.epochs: expected an integer, found \"2\""},
      {"grid.train.epoch = [1]\n" + one,
       "sweep.toml:1: unknown key \"train.epoch\" (did you mean \"train.epochs\"?)"},
      {"grid.train.optimizer = [{ lr = 1.0 }]\n" + one,
       "sweep.toml:1: grid.train.optimizer: expected numbers, texts, booleans or lists of them, found a table"},
      {"grid.seed = [1]\n" + one, "sweep.toml:1: grid.seed: a grid cannot vary it; seeds = [...] does"},
      {"grid.name = [\"a\"]\n" + one, "sweep.toml:1: grid.name: a grid cannot vary it"},
      {"grid.train.epochs = [1, 2]\n" + one + "train.epochs = 3\n",
       "sweep.toml:4: train.epochs: a variant cannot set what the sweep's grid varies"},
      {"grid.train.epochs = [1, 1]\n" + one,
       "sweep.toml:1: grid: expected values that make names that differ, found \"a-epochs-1\" twice"},
      {"seeds = [1]\n" + one + "seed = 2\n",
       "sweep.toml:4: seed: a variant cannot set it where the sweep has seeds"},
  };
  for (const auto& [text, message] : rows) EXPECT_EQ(error_of(text), message) << text;
}

TEST_F(SweepFile, HasAtMostTenThousandRuns) {
  const auto list = [](int from, int to) {
    std::string text = "[";
    for (int i = from; i <= to; ++i) text += std::to_string(i) + ", ";
    return text + "]\n";
  };
  std::string grid = "[grid]\n";
  for (const auto* key : {"train.epochs", "train.accumulate", "data.batch_size", "data.test_limit"}) {
    grid += std::string(key) + " = " + list(1, 11);
  }
  EXPECT_EQ(error_of(grid),
            "sweep.toml: expected at most 10,000 runs, found 1 variant x 1 seed x 14,641 points of the grid");
  const std::string variants = "[[variants]]\nname = \"a\"\n[[variants]]\nname = \"b\"\n";
  const std::string few = "[grid]\ntrain.epochs = " + list(1, 72) + "data.batch_size = " + list(1, 70);
  EXPECT_EQ(error_of("seeds = [0, 1, 2]\n" + few + variants),
            "sweep.toml: expected at most 10,000 runs, found 2 variants x 3 seeds x 5,040 points of the grid");
  EXPECT_EQ(error_of("seeds = " + list(0, 5000) + variants),
            "sweep.toml: expected at most 10,000 runs, found 2 variants x 5,001 seeds x 1 point of the grid");
  // Beyond every integer, and more than any memory has room for.
  std::string wide = "[grid]\n";
  for (int i = 0; i < 100; ++i) wide += "k" + std::to_string(i) + " = " + list(1, 11);
  EXPECT_TRUE(error_of(wide).ends_with(" x 1.37806e+104 points of the grid")) << error_of(wide);
}

TEST_F(SweepFile, NamesOfAGridArePartsOfAFoldersName) {
  const std::string expected =
      ": expected values that make names of at most 100 characters, found a longer one";
  const std::string half(60, 'a');
  EXPECT_EQ(error_of("[grid]\ndata.root = [\"x\", \"" + std::string(200'000, 'a') + "\"]\n"),
            "sweep.toml:2: grid.data.root" + expected);
  EXPECT_EQ(error_of("[grid]\ndata.root = [\"" + half + "\"]\nmodel.init = [\"x\", \"" + half + "\"]\n"),
            "sweep.toml:1: grid" + expected);
  std::string many = "[grid]\n";
  for (int i = 0; i < 50; ++i) many += "k" + std::to_string(i) + " = [1]\n";
  EXPECT_EQ(error_of(many), "sweep.toml:1: grid" + expected);
  many = "[grid.a]\n";
  for (int i = 0; i < 101; ++i) many += "k" + std::to_string(i) + " = [1]\n";
  EXPECT_TRUE(error_of(many).ends_with(": grid" + expected)) << error_of(many);
}

TEST(SweepGrid, MakesOnePointAtATime) {
  auto root = parse_toml(
      "[grid]\ntrain.optimizer.lr = [1e-4, 0.5]\ndata.batch_size = [50, 100, 200]\nno.such.key = [true]\n",
      "a");
  const SweepGrid grid(root);
  EXPECT_FALSE(grid.is_empty());
  EXPECT_FALSE(root.contains("grid"));
  ASSERT_EQ(grid.size(), 6U);
  EXPECT_EQ(grid.point(0).name, "batch_size-50-key-true-lr-0.0001");
  EXPECT_EQ(grid.point(1).name, "batch_size-50-key-true-lr-0.5");
  EXPECT_EQ(grid.point(5).name, "batch_size-200-key-true-lr-0.5");
  const auto& data = *grid.point(2).layer.at("data").get<TomlTable>();
  EXPECT_EQ(*data.at("batch_size").get<int64_t>(), 100);
  TomlTable none;
  EXPECT_TRUE(SweepGrid(none).is_empty());
  EXPECT_EQ(SweepGrid(none).size(), 1U);
}

/// Ten thousand copies of the variant would be a terabyte: an unknown key is refused at the first run.
TEST_F(SweepFile, AnUnknownKeyIsRefusedBeforeTheGridIsCrossed) {
  std::string text = "[grid]\nno.such = [";
  for (int i = 0; i < 10'000; ++i) text += std::to_string(i) + ", ";
  text += "]\n[[variants]]\nname = \"a\"\nother = [";
  for (int i = 0; i < 100'000; ++i) text += "1,";
  EXPECT_TRUE(error_of(text + "]\n").starts_with("sweep.toml:2: unknown key \"no\"")) << error_of(text + "]\n");
}

}  // namespace
}  // namespace strait
