// The picture of quality over bytes.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/report/browser.h"

namespace strait::report {
namespace {

class QualityPicture : public Browser {};

/// `even` is beaten by `few`, `worse` by all; `lost` has diverged.
Table rivals() {
  Table table{"t",
              "Rivals",
              {{"none", {}, {scored_run(0, 90, 90, 1e6), scored_run(1, 94, 94, 1e6)}},
               {"few", {}, {scored_run(0, 60, 80, 1e5), scored_run(1, 60, 82, 1e5)}},
               {"even", {}, {scored_run(0, 60, 81, 2e5)}},
               {"worse", {}, {scored_run(0, 95, 10, 2e5)}},
               {"least", {}, {scored_run(0, 50, 70, 1e4)}},
               {"lost", {}, {scored_run(0, 10, 10, 1e3)}}}};
  table.variants.back().runs[0].status = Status::diverged;
  return table;
}

TEST_F(QualityPicture, HasBarsNamesAndTheLineThatNoneBeats) {
  const std::string dom = open(driven(to_html({rivals()}), R"(
    const {chart} = figures[0];
    const bars = chart.errorBars.map(({low, high}) => chart.scales.y.getValueForPixel(high) -
      chart.scales.y.getValueForPixel(low));
    document.body.dataset.bars = bars.map((length) => length.toFixed(2)).join(" ");
    chart.canvas.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight"}));
    chart.canvas.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight"}));)"));
  EXPECT_EQ(drawn(dom).at(0), 6);
  EXPECT_TRUE(has(dom, "data-named=\"5\""));
  EXPECT_TRUE(has(dom, "data-bars=\"4.00 2.00\"")) << "two standard errors: of 90 and 94, of 80 and 82";
  EXPECT_TRUE(has(dom, "no other variant beats: none, few, least. Without a score or bytes: lost.</p>"));
  EXPECT_TRUE(has(dom,
                  "aria-live=\"polite\">few, accuracy: 81.00 % ± 1.00 % (2 seeds), 50 kB per step, "
                  "10× fewer bytes than uncompressed, no other variant beats it</p>"));
  EXPECT_FALSE(has(dom, "data-errors"));
}

TEST_F(QualityPicture, WithCompressionOffIsCompared) {
  const std::string dom = open(driven(to_html({rivals()}), R"(
    const [side, axis] = document.querySelectorAll(".quality select");
    side.value = "off";
    axis.value = "ratio";
    axis.dispatchEvent(new Event("change", {bubbles: true}));
    document.body.dataset.places = figures[0].chart.data.datasets.at(-1).data.map(({x}) => x).join(" ");)"));
  EXPECT_TRUE(has(dom, "no other variant beats: worse, few, least. Without"));
  EXPECT_TRUE(has(dom, "data-places=\"5 10 100\""));
  EXPECT_FALSE(has(dom, "data-errors"));
}

TEST_F(QualityPicture, ManyVariantsAreNamedEachByItself) {
  Table table{"t", "Many", {}};
  for (int i = 0; i < 20; ++i) {
    table.variants.push_back(
        {fmt::format("quant-of-{}-bits", i), {}, {scored_run(0, 50, 50 + i % 5, 1e5 * (1 + i / 5))}});
  }
  const std::string twenty = open(to_html({table}));
  EXPECT_TRUE(has(twenty, "data-named=\"20\""));
  for (int i = 20; i < 300; ++i) {
    table.variants.push_back({fmt::format("v{}", i), {}, {scored_run(0, 50, 50 + i % 17, 1e4 * i)}});
  }
  const std::string many = open(driven(to_html({table}), R"(
    const {names} = figures[0].chart;
    const apart = names.every((name, i) => names.slice(i + 1).every((other) => overlap(name, other) === 0));
    document.body.dataset.apart = apart && names.length > 20;)"));
  EXPECT_EQ(drawn(many).at(0), 301);
  EXPECT_TRUE(has(many, "data-apart=\"true\""));
  EXPECT_FALSE(has(many, "data-errors"));
}

TEST_F(QualityPicture, PerplexitiesFarApartHaveALogarithmicAxis) {
  Table table{"t", "Text", {}};
  for (const double perplexity : {30.0, 40.0, 5e21}) {
    report::Run run = scored_run(0, 0, 0, 1e5);
    run.epochs[0].off = run.epochs[0].on = {{"loss", std::log(perplexity)}, {"perplexity", perplexity}};
    table.variants.push_back({fmt::format("{}", perplexity), {}, {run}});
  }
  const std::string dom =
      open(driven(to_html({table}), "document.body.dataset.scale = figures[0].chart.scales.y.type;"));
  EXPECT_TRUE(has(dom, "data-scale=\"logarithmic\""));
  EXPECT_TRUE(has(dom, "no other variant beats: 30.</p>")) << "the lowest is the best";
  table.variants.resize(2);
  const std::string near =
      open(driven(to_html({table}), "document.body.dataset.scale = figures[0].chart.scales.y.type;"));
  EXPECT_TRUE(has(near, "data-scale=\"linear\""));
}

}  // namespace
}  // namespace strait::report
