// The page as a browser shows it.

#include <gmock/gmock.h>

#include "tests/report/browser.h"

namespace strait::report {
namespace {

TEST_F(Browser, DrawsEveryChartWithoutAnErrorOrARequest) {
  const std::string dom = open(sample());
  // Quality over bytes: a point for each of 6 variants and the Pareto line.
  // Curves: a line and two edges of its band for each of 6 variants; bars and diagnostics: 3 boundaries.
  EXPECT_THAT(drawn(dom), testing::ElementsAre(7, 18, 18, 18, 0, 0, 0, 0, 3, 3, 9, 9));
  EXPECT_FALSE(has(dom, "data-errors"));
  EXPECT_TRUE(has(dom, "aria-pressed=\"true\""));
  EXPECT_TRUE(has(dom, "<div class=\"diagnostics part\">"));
  EXPECT_THAT(requests(), testing::IsEmpty());
}

TEST_F(Browser, TheLossOverStepsIsDrawnWhereItWasMeasured) {
  std::string line = test::epoch_line(0, 2.5, 10, 11);
  line.insert(1, R"("evaluations":[{"step":40,"test":{"off":{"loss":2},"on":{"loss":3}}},)"
                 R"({"step":80,"test":{"off":{"loss":1},"on":{"loss":2}}}],)");
  test::write_run(dir_ / "run", "name", 0, "done", line);
  const std::vector<std::filesystem::path> folders = {dir_ / "run"};
  const std::string dom = open(driven(to_html(read_tables(folders)), R"(
    document.querySelectorAll("canvas")[5].dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight"}));)"));
  EXPECT_THAT(drawn(dom), testing::ElementsAre(0, 1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0));
  EXPECT_FALSE(has(dom, "data-errors"));
  EXPECT_TRUE(has(dom, "<div class=\"steps part\">"));
  EXPECT_TRUE(has(dom, "aria-live=\"polite\">Step 40, name: 3.0000 (1 seed)"));
}

TEST_F(Browser, ARunThatHasJustBegunMakesAPage) {
  test::write_run(dir_ / "run", "name</script>", 0, "running", "");
  const std::vector<std::filesystem::path> folders = {dir_ / "run"};
  const std::string dom = open(to_html(read_tables(folders)));
  EXPECT_THAT(drawn(dom), testing::ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_FALSE(has(dom, "data-errors"));
  EXPECT_TRUE(has(dom, "<div class=\"diagnostics part\" hidden"));
}

TEST_F(Browser, ChipsRowsAndKeysAnswer) {
  const std::string dom = open(driven(sample(), R"(
    document.querySelectorAll(".chip")[2].click();
    document.querySelectorAll(".results tbody tr")[5].click();
    document.getElementById("details-seed").value = "1";
    document.getElementById("details-seed").dispatchEvent(new Event("change"));
    for (let i = 0; i < 2; ++i) {
      document.querySelectorAll("canvas")[1].dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight"}));
    })"));
  EXPECT_THAT(drawn(dom), testing::ElementsAre(6, 15, 15, 15, 0, 0, 0, 0, 3, 3, 9, 9));
  EXPECT_FALSE(has(dom, "data-errors"));
  EXPECT_TRUE(has(dom, "<dialog id=\"details\" aria-labelledby=\"details-title\" open"));
  EXPECT_TRUE(has(dom, "<dt>Status</dt><dd>diverged</dd>"));
  EXPECT_TRUE(has(dom, "<pre id=\"details-config\" tabindex=\"0\">name = \"fw4-bw2-seed1\"\nseed = 1\n"));
  EXPECT_TRUE(has(dom, "aria-live=\"polite\">Epoch 2, fw4-bw2: "));
}

TEST_F(Browser, PaperIsLightAndShowsEveryTable) {
  const std::string dom = open(driven(sample(), "window.dispatchEvent(new Event('beforeprint'));"));
  EXPECT_THAT(drawn(dom), testing::ElementsAre(7, 18, 18, 18, 0, 0, 0, 0, 3, 3, 9, 9));
  EXPECT_TRUE(has(dom, "height: 230px; width: 600px;"));
  EXPECT_TRUE(has(dom, "<details class=\"more\" open"));
  EXPECT_FALSE(has(dom, "data-errors"));
}

TEST_F(Browser, AfterPrintingTheTablesAreAsTheReaderHadThem) {
  const std::string script = R"(
    const [first, ...others] = document.querySelectorAll("details.more");
    first.open = true;
    window.dispatchEvent(new Event("beforeprint"));
    window.dispatchEvent(new Event("beforeprint"));
    window.dispatchEvent(new Event("afterprint"));
    document.body.dataset.open = [first, ...others].map(({open}) => open).join(" ");)";
  auto tables = std::vector<Table>{{"t", "T", {{"a", {}, {scored_run(0, 50, 60, 1e5)}}}}};
  tables.push_back(tables[0]);
  EXPECT_TRUE(has(open(driven(to_html(tables), script)), "data-open=\"true false\""));
}

TEST_F(Browser, RunsThatWaitHaveAxesOfBytes) {
  const std::string dom = open(driven(to_html({{"t", "T", {{"a", {}, {report::Run()}}}}}), R"(
    document.body.dataset.text = [0, 0.2, 1, 999, 1000].map(bytesText).join("/");
    const labels = figures.filter(({canvas}) => canvas.dataset.figure === "activations")
      .flatMap(({chart}) => Object.values(chart.scales).flatMap(({ticks}) => ticks.map(({label}) => label)));
    const ofBytes = labels.filter((label) => label.endsWith(" B"));
    document.body.dataset.labels = (ofBytes.length > 1) + " " + labels.some((label) => label.includes("undefined"));)"));
  EXPECT_TRUE(has(dom, "data-text=\"0 B/0.2 B/1 B/999 B/1 kB\"")) << dom.substr(dom.find("data-text"), 100);
  EXPECT_TRUE(has(dom, "data-labels=\"true false\"")) << dom.substr(dom.find("data-labels"), 100);
  EXPECT_FALSE(has(dom, "data-errors"));
}

TEST_F(Browser, ThePolicyRefusesWhatIsNotThePages) {
  std::string page = sample();
  page.insert(page.find("</main>"),
              "<img src=\"http://127.0.0.1:9/x.png\" alt=\"\"><script>document.title = \"run\"</script>");
  const std::string dom = open(page);
  EXPECT_TRUE(has(dom, "data-errors=\""));
  EXPECT_TRUE(has(dom, "img-src refused"));
  EXPECT_TRUE(has(dom, "script-src-elem refused inline"));
  EXPECT_FALSE(has(dom, "<title>run</title>"));
  EXPECT_THAT(requests(), testing::IsEmpty());
}

TEST_F(Browser, TheLogOfRequestsSeesThem) {
  open("<!doctype html><title>t</title><img src=\"http://127.0.0.1:9/x.png\">");
  EXPECT_THAT(requests(), testing::Contains("http://127.0.0.1:9/x.png"));
}

}  // namespace
}  // namespace strait::report
