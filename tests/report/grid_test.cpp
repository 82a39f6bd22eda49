#include "strait/report/grid.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "strait/report/text_table.h"
#include "strait/report/writers.h"

namespace strait::report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A variant of a run with the codecs, an accuracy, and what else its configuration says.
Variant of_codecs(const std::string& activations, const std::string& gradients, double accuracy = 50,
                  const std::string& others = "") {
  Run run;
  run.status = Status::done;
  run.config = fmt::format(
      "name = \"{0}-{1}\"\nseed = 0\n{3}\n[compression]\nactivations = {{ codec = \"{0}\", feedback = \"none\" "
      "}}\n"
      "gradients = {{ codec = \"{1}\" }}\nboundaries = []\n[train]\nepochs = {2}\n",
      activations, gradients, 20, others);
  Epoch epoch;
  epoch.off = {{"accuracy", accuracy - 1}};
  epoch.on = {{"accuracy", accuracy}};
  run.epochs = {epoch};
  Run other = run;
  other.seed = 1;
  other.epochs[0].on = {{"accuracy", accuracy + 2}};
  return {activations + "-" + gradients, {}, {run, other}};
}

Table full_grid() {
  return {"t",
          "A grid",
          {of_codecs("quant:4", "quant:8", 60), of_codecs("quant:4", "quant:4", 61),
           of_codecs("quant:2", "quant:8", 62), of_codecs("quant:2", "quant:4", 63)}};
}

TEST(Grid, IsFoundByTheConfigurations) {
  const Table table = full_grid();
  const auto grid = find_grid(table);
  ASSERT_TRUE(grid.has_value());
  EXPECT_EQ(grid->down, "compression.activations.codec");
  EXPECT_EQ(grid->across, "compression.gradients.codec");
  EXPECT_THAT(grid->rows, ElementsAre("quant:4", "quant:2"));
  EXPECT_THAT(grid->columns, ElementsAre("quant:8", "quant:4"));
  EXPECT_EQ(grid->cells[1][0], &table.variants[2]);
  const TextTable text = crossed_table(*grid, metric_of(table), scorings_of(table)[1]);
  EXPECT_THAT(text.rows, ElementsAre(ElementsAre("quant:4", "61.00 ± 1.00", "62.00 ± 1.00"),
                                     ElementsAre("quant:2", "63.00 ± 1.00", "64.00 ± 1.00")));
  EXPECT_EQ(text.columns[2].group, "compression.gradients.codec");
  EXPECT_EQ(text.columns[2].label, "quant:4");
}

TEST(Grid, MayLackAQuarterOfItsCells) {
  Table table = full_grid();
  table.variants.pop_back();
  const auto grid = find_grid(table);
  ASSERT_TRUE(grid.has_value());
  EXPECT_EQ(grid->cells[1][1], nullptr);
  EXPECT_EQ(crossed_table(*grid, metric_of(table), scorings_of(table)[0]).rows[1].back(), "–");
  table.variants.pop_back();
  EXPECT_FALSE(find_grid(table).has_value());
}

TEST(Grid, LeavesOutWhatIsBesideIt) {
  Table table = full_grid();
  table.variants.insert(table.variants.begin(), of_codecs("none", "none"));
  table.variants.push_back(of_codecs("topk:10", "topk:10"));
  const auto grid = find_grid(table);
  ASSERT_TRUE(grid.has_value());
  EXPECT_THAT(grid->rows, ElementsAre("quant:4", "quant:2"));
  EXPECT_THAT(grid->columns, ElementsAre("quant:8", "quant:4"));
  for (const char* codec : {"a", "b", "c"}) table.variants.push_back(of_codecs(codec, codec));
  EXPECT_FALSE(find_grid(table).has_value()) << "4 of 9 are no longer half";
}

TEST(Grid, KeepsTheRowThatSharesAColumn) {
  const Table table{
      "t",
      "t",
      {of_codecs("none", "none"), of_codecs("quant:4", "quant:8"), of_codecs("quant:4", "quant:4"),
       of_codecs("quant:2", "quant:8"), of_codecs("topk:10", "topk:10"), of_codecs("quant:4", "quant:2")}};
  const auto grid = find_grid(table);
  ASSERT_TRUE(grid.has_value());
  EXPECT_THAT(grid->rows, ElementsAre("quant:4", "quant:2"));
  EXPECT_THAT(grid->columns, ElementsAre("quant:8", "quant:4"));
}

TEST(Grid, HasNeverTwoVariantsInACell) {
  Table table = full_grid();
  table.variants.push_back(of_codecs("quant:4", "quant:8", 10, "x = 1"));
  for (size_t i = 0; i < 4; ++i) table.variants[i].runs[0].config.insert(0, "x = 0\n");
  EXPECT_FALSE(find_grid(table).has_value());
}

TEST(Grid, OtherKeysFollowFromItsTwo) {
  Table table = full_grid();
  const auto add = [&](size_t variant, const std::string& line) {
    table.variants[variant].runs[0].config.insert(0, line);
  };
  for (const size_t i : {0, 1}) add(i, "feedback = \"ef\"\n");
  for (const size_t i : {2, 3}) add(i, "feedback = \"none\"\n");
  ASSERT_TRUE(find_grid(table).has_value());
  EXPECT_EQ(find_grid(table)->down, "compression.activations.codec");
  for (const size_t i : {0, 1, 2}) add(i, "rate = 0.1\n");
  add(3, "rate = 0.2\n");
  EXPECT_FALSE(find_grid(table).has_value()) << "the rate depends on both";
}

TEST(Grid, IsNotLookedForWithoutConfigurations) {
  Table table = full_grid();
  for (auto& variant : table.variants) variant.runs[0].config = "not [ TOML";
  EXPECT_FALSE(find_grid(table).has_value());
  for (auto& variant : table.variants) variant.runs.clear();
  EXPECT_FALSE(find_grid(table).has_value());
  EXPECT_FALSE(find_grid({}).has_value());
}

TEST(Grid, OfAThousandDifferentVariantsIsNone) {
  Table table{"t", "t", {}};
  for (int i = 0; i < 1000; ++i) {
    table.variants.push_back(of_codecs(fmt::format("a{}", i), fmt::format("b{}", i)));
  }
  EXPECT_FALSE(find_grid(table).has_value());
}

TEST(Grid, StandsInThePageAndInMarkdown) {
  const std::string page = to_html({full_grid()});
  EXPECT_THAT(page, HasSubstr("<h3>compression.activations.codec × compression.gradients.codec</h3>"));
  EXPECT_THAT(
      page,
      HasSubstr("<tr><th scope=\"row\">quant:2</th><td class=\"number\" data-value=\"63\">63.00 ± 1.00</td>"));
  EXPECT_THAT(to_markdown({full_grid()}), HasSubstr("\n| quant:2 | 63.00 ± 1.00 | 64.00 ± 1.00 |\n"));
  Table none = full_grid();
  none.variants.resize(1);
  EXPECT_THAT(to_html({none}), testing::Not(HasSubstr("class=\"crossed\"")));
}

}  // namespace
}  // namespace strait::report
