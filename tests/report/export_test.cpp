// Charts saved as files.

#include <gmock/gmock.h>

#include "tests/report/browser.h"

namespace strait::report {
namespace {

class ChartExport : public Browser {
 protected:
  /// The sample's page after `script`, which has names and saved(chart, kind): what a button of that chart
  /// saves.
  std::string saving(const std::string& script, const std::vector<Table>& tables) {
    return open(driven(to_html(tables), R"(
      const names = [];
      HTMLAnchorElement.prototype.click = function () { names.push(this.download); };
      let made;
      window.Blob = class extends Blob {
        constructor(parts, options) {
          super(parts, options);
          made = {parts, type: options.type};
        }
      };
      const saved = (chart, kind) => {
        const place = figures[chart].canvas.closest("figure");
        [...place.querySelectorAll(".export button")].find((button) => button.textContent === kind).click();
        return made;
      };
      {)" + script + "}"));
  }

  std::vector<Table> tables() {
    test::write_sample_sweep(dir_ / "sweep");
    const std::vector<std::filesystem::path> folders = {dir_ / "sweep"};
    return read_tables(folders);
  }
};

TEST_F(ChartExport, TheCsvHasTheNumbers) {
  Table table{"t",
              "T",
              {{"=a, \"b\"", {}, {scored_run(0, 50, 60, 1e5), scored_run(1, 50, 62, 1e5)}},
               {"c", {}, {scored_run(0, 50, 70, 2e5)}}}};
  const std::string dom = saving(R"(
    document.body.dataset.quality = saved(0, "CSV").parts.join("");
    document.body.dataset.curve = saved(3, "CSV").parts.join("");
    document.body.dataset.bars = saved(5, "CSV").parts.join("");
    document.body.dataset.names = names.join(" ");)",
                                 {table});
  EXPECT_TRUE(
      has(dom,
          "data-quality=\"variant,&quot;accuracy, %&quot;,standard error,seeds,wire bytes per step,times "
          "fewer bytes,on the Pareto line\r\n&quot;'=a, &quot;&quot;b&quot;&quot;&quot;,61,1,2,50000,10,1\r\n"
          "c,70,,1,100000,5,1\r\n\""))
      << dom.substr(dom.find("data-quality"), 300);
  EXPECT_TRUE(has(dom,
                  "data-curve=\"series,epoch,&quot;accuracy, %&quot;,standard error,seeds\r\n"
                  "&quot;'=a, &quot;&quot;b&quot;&quot;&quot;,1,61,1,2\r\nc,1,70,,1\r\n\""));
  EXPECT_TRUE(has(dom, "data-bars=\"variant,boundary,wire bytes per step\r\n"));
  EXPECT_TRUE(has(dom,
                  "data-names=\"test-accuracy-over-bytes.csv test-accuracy-compression-on-plain.csv "
                  "gradients-wire-bytes-per-step.csv\""));
  EXPECT_FALSE(has(dom, "data-errors"));
}

TEST_F(ChartExport, TheSvgIsWhatTheChartShows) {
  const std::string dom = saving(R"(
    const seen = [];
    for (let chart = 0; chart < figures.length; ++chart) {
      const text = svgOf(figures[chart], "title");
      const svg = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
      seen.push([svg.nodeName, ...["path", "rect", "circle", "polygon"].map((name) => svg.querySelectorAll(name).length)].join(" "));
      if (chart !== 1) continue;
      const point = figures[1].chart.getDatasetMeta(0).data[0];
      const first = svg.querySelector("path[stroke='#1d2026']").getAttribute("d");
      document.body.dataset.begins = first.startsWith("M" + Number(point.x.toFixed(2)) + " " + Number(point.y.toFixed(2)));
      document.body.dataset.legend = [...svg.querySelectorAll("text")].slice(-6).map((text) => text.textContent).join(" ");
    }
    document.body.dataset.seen = seen.join("|");)",
                                 tables());
  // The steps of the line; 6 points, of circles alone. 6 lines and their bands, which last is one seed's with
  // some of two.
  EXPECT_TRUE(has(dom, "data-begins=\"true\""));
  EXPECT_TRUE(has(dom, "data-legend=\"none fw4-bw8 fw4-bw4 fw2-bw8 topk-10 fw4-bw2\""));
  EXPECT_TRUE(has(dom,
                  "data-seen=\"svg 1 1 6 0|svg 12 1 0 0|svg 12 1 0 0|svg 12 1 0 0|svg 0 22 0 0|svg 0 22 0 0|"
                  "svg 6 1 0 0|svg 6 1 0 0\""))
      << dom.substr(dom.find("<body data"), 300);
  EXPECT_FALSE(has(dom, "data-errors"));
}

TEST_F(ChartExport, NamesStayTextInSvg) {
  Table table{
      "t",
      "T",
      {{"</text><script>&\"\x01", {}, {scored_run(0, 50, 60, 1e5)}}, {"c", {}, {scored_run(0, 50, 70, 2e5)}}}};
  const std::string dom = saving(R"(
    const text = saved(0, "SVG").parts.join("");  // by its button
    const svg = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
    document.body.dataset.texts = [...svg.querySelectorAll("text")].slice(-2).map((text) => text.textContent).join("|");
    document.body.dataset.scripts = svg.querySelectorAll("script, parsererror").length;)",
                                 {table});
  EXPECT_TRUE(has(dom, "data-scripts=\"0\""));
  EXPECT_TRUE(has(dom, "&lt;/text&gt;&lt;script&gt;&amp;&quot;") || has(dom, "</text><script>&amp;&quot;|c"))
      << dom.substr(dom.find("data-texts"), 200);
}

TEST_F(ChartExport, ThePngIsAPictureWithTheLegend) {
  const std::string dom = saving(R"(
    const {type, parts: [bytes]} = saved(1, "PNG");
    const {canvas, chart} = figures[1];
    const size = new DataView(bytes.buffer, 16);
    document.body.dataset.kind = type + " " + String.fromCharCode(...bytes.slice(1, 4));
    document.body.dataset.wide = size.getUint32(0) === canvas.width;
    document.body.dataset.higher = size.getUint32(4) > canvas.height + 40;
    const copy = pictureOf(figures[1], "title").getContext("2d");
    document.body.dataset.corner = copy.getImageData(0, 0, 1, 1).data.join(" ");
    const ratio = chart.currentDevicePixelRatio;
    const {x, y} = chart.getDatasetMeta(0).data[0];
    const {data} = copy.getImageData(Math.round(x * ratio), Math.round((y + kTitleHeight) * ratio), 1, 1);
    document.body.dataset.dark = Math.max(data[0], data[1], data[2]) < 160;)",
                                 tables());
  EXPECT_TRUE(has(dom, "data-kind=\"image/png PNG\""));
  EXPECT_TRUE(has(dom, "data-wide=\"true\""));
  EXPECT_TRUE(has(dom, "data-higher=\"true\""));
  EXPECT_TRUE(has(dom, "data-corner=\"255 255 255 255\"")) << "paper, not clear";
  EXPECT_TRUE(has(dom, "data-dark=\"true\"")) << "the first point of the first curve";
  EXPECT_FALSE(has(dom, "data-errors"));
}

TEST_F(ChartExport, ThePolicyLetsTheFileBeSaved) {
  const std::string dom = open(driven(sample(), R"(
    document.querySelectorAll(".export button").forEach((button) => button.click());)"));
  EXPECT_FALSE(has(dom, "data-errors")) << dom.substr(dom.find("data-errors"), 300);
}

}  // namespace
}  // namespace strait::report
