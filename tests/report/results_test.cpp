// The table of results under a reader's hands: sorted, and as differences to a baseline.

#include <gmock/gmock.h>

#include "tests/report/browser.h"

namespace strait::report {
namespace {

class ResultsPage : public Browser {};

/// `b` shares seeds 0 and 2 with `a`, which sends the most; `c` shares none; `d` has diverged.
Table seeds_apart() {
  Table table{"t",
              "Seeds",
              {{"b", {}, {scored_run(0, 60, 80, 1e5), scored_run(1, 10, 10, 1e5), scored_run(2, 61, 84, 1e5)}},
               {"a", {}, {scored_run(0, 90, 90, 1e6), scored_run(2, 94, 91, 1e6), scored_run(3, 10, 10, 1e6)}},
               {"c10", {}, {scored_run(7, 70, 70.5, 2e5)}},
               {"c9", {}, {scored_run(0, 10, 10, 1e3)}}}};
  table.variants.back().runs[0].status = Status::diverged;
  return table;
}

/// Notes the rows' names and the cells of a column in an attribute of the page.
constexpr const char* kNote = R"(
    const note = (name, column) => {
      const rows = [...document.querySelectorAll(".results tbody tr")];
      document.body.dataset[name] = rows.map(({cells}) => cells[column].textContent).join("|");
    };
    const heads = [...document.querySelectorAll(".results th[data-column]")]
      .sort((a, b) => a.dataset.column - b.dataset.column);
    const sorts = () => heads.map((head) => head.getAttribute("aria-sort")[0]).join("");)";

std::string noting(const Table& table, const std::string& script) {
  return driven(to_html({table}), kNote + script);
}

TEST_F(ResultsPage, AHeadSortsUpThenDownThenAsTheFile) {
  const std::string dom = open(noting(seeds_apart(), R"(
    const press = (column, name) => { heads[column].querySelector("button").click(); note(name, 0); };
    press(4, "up");
    document.body.dataset.sorts = sorts();
    press(4, "down");
    press(4, "file");
    press(0, "names");)"));
  EXPECT_TRUE(has(dom, "data-up=\"b|a|c10|c9\"")) << "58, 63.67, 70.5, and what has none at the end";
  EXPECT_TRUE(has(dom, "data-down=\"c10|a|b|c9\""));
  EXPECT_TRUE(has(dom, "data-file=\"b|a|c10|c9\""));
  EXPECT_TRUE(has(dom, "data-names=\"a|b|c9|c10\""));
  EXPECT_TRUE(has(dom, "data-sorts=\"nnnnannnnnn\"")) << "ascending by the fifth column";
  EXPECT_FALSE(has(dom, "data-errors"));
}

TEST_F(ResultsPage, EveryTableIsSorted) {
  const std::string dom = open(driven(to_html({seeds_apart()}), R"(
    document.querySelector("details.more th[data-column='3'] button").click();
    document.body.dataset.rows = [...document.querySelectorAll("details.more tbody tr")]
      .map(({cells}) => cells[0].textContent + cells[3].textContent).join("|");)"));
  EXPECT_TRUE(has(dom, "data-rows=\"b50,000|c10100,000|a500,000\""));
}

TEST_F(ResultsPage, DifferencesArePairedOverTheSeedsThatBothHave) {
  const std::string dom = open(noting(seeds_apart(), R"(
    document.querySelector("[data-choice=differences]").click();
    note("off", 3);
    note("on", 4);
    document.body.dataset.paired = document.querySelector(".results tbody tr").cells[3].title;
    heads[4].querySelector("button").click();
    note("sorted", 0);
    document.querySelector("[data-choice=differences]").click();
    note("back", 4);)"));
  // Off: 60 - 90 and 61 - 94 give -31.5 with half their distance as the error; on: -10 and -7.
  EXPECT_TRUE(has(dom, "data-off=\"-31.50 ± 1.50|64.67 ± 27.36|–|–\""));
  EXPECT_TRUE(has(dom, "data-on=\"-8.50 ± 1.50|63.67 ± 26.83|–|–\""));
  EXPECT_TRUE(has(dom, "data-paired=\"paired over seeds 0, 2\""));
  EXPECT_TRUE(has(dom, "data-sorted=\"b|a|c10|c9\""));
  EXPECT_TRUE(has(dom, "data-back=\"58.00 ± 24.03|63.67 ± 26.83|70.50 (n = 1)|–\""));
  EXPECT_FALSE(has(dom, "data-errors"));
}

TEST_F(ResultsPage, TheReaderPicksTheBaseline) {
  const std::string dom = open(noting(seeds_apart(), R"(
    const baseline = document.querySelector("[data-choice=baseline]");
    document.body.dataset.usual = table_names()[baseline.value];
    function table_names() { return data.tables[0].variants.map(({name}) => name); }
    baseline.value = "0";
    baseline.dispatchEvent(new Event("change", {bubbles: true}));
    note("on", 4);)"));
  EXPECT_TRUE(has(dom, "data-usual=\"a\"")) << "it sends the most bytes";
  EXPECT_TRUE(has(dom, "data-on=\"58.00 ± 24.03|+8.50 ± 1.50|–|–\""));
  EXPECT_TRUE(has(dom,
                  "<tr class=\"baseline\"><th scope=\"row\"><button type=\"button\" class=\"run\" "
                  "data-variant=\"0\">b<"));
  EXPECT_TRUE(has(dom, "Last epoch: mean difference to b, "));
}

TEST_F(ResultsPage, RunsUnderWayAreComparedAtTheSameEpochAlone) {
  Table table = seeds_apart();
  table.variants.resize(2);
  for (auto& run : table.variants[0].runs) run.status = Status::running, run.epochs[0].number = 1;
  const std::string script = R"(document.querySelector("[data-choice=differences]").click(); note("on", 4);)";
  EXPECT_TRUE(has(open(noting(table, script)), "data-on=\"–|63.67 ± 26.83\""));
  for (auto& run : table.variants[1].runs) run.epochs[0].number = 1;
  EXPECT_TRUE(has(open(noting(table, script)), "data-on=\"-8.50 ± 1.50|63.67 ± 26.83\""));
}

TEST_F(ResultsPage, LossesOfTextAreCompared) {
  Table table = seeds_apart();
  table.variants.resize(2);
  for (auto& variant : table.variants) {
    for (auto& run : variant.runs) {
      Epoch& epoch = run.epochs[0];
      epoch.on = {{"loss", epoch.on.at("accuracy") / 10}, {"perplexity", 5e20}};
      epoch.off = {{"perplexity", 2.5}};
    }
  }
  const std::string dom = open(noting(table, R"(
    document.querySelector("[data-choice=differences]").click();
    note("perplexity", 4);
    note("loss", 6);)"));
  EXPECT_TRUE(has(dom, "data-loss=\"-0.85 ± 0.15|6.37 ± 2.68\""));
  EXPECT_TRUE(has(dom, "data-perplexity=\"+0.00 ± 0.00|5.00e+20 ± 0.00\""));

  table.variants[0].runs.back().epochs[0].on.erase("perplexity");  // beyond all numbers
  const std::string one = open(noting(table, R"(
    document.querySelector("[data-choice=differences]").click();
    note("perplexity", 4);
    note("loss", 6);)"));
  EXPECT_TRUE(has(one, "data-perplexity=\"–|5.00e+20 ± 0.00\"")) << one.substr(one.find("data-perpl"), 100);
  EXPECT_TRUE(has(one, "data-loss=\"-0.85 ± 0.15|6.37 ± 2.68\""));
}

TEST_F(ResultsPage, ASingleVariantHasNothingToCompare) {
  Table table = seeds_apart();
  table.variants.resize(1);
  EXPECT_TRUE(has(open(to_html({table})), "<p class=\"choice compare screen\" hidden"));
}

}  // namespace
}  // namespace strait::report
