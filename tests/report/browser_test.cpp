// The page as a browser shows it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "strait/base/text.h"
#include "strait/report/writers.h"
#include "tests/report/sample_sweep.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace strait::report {
namespace {

class Browser : public testing::Test {
 protected:
  /// What becomes of the page once its scripts have run. Leaves net.json, the browser's log of requests.
  std::string open(const std::string& page) {
    test::write_file(dir_ / "page.html", page);
    const auto result = test::run_process(
        STRAIT_BROWSER,
        {"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--host-resolver-rules=MAP * ~NOTFOUND", "--user-data-dir=" + (dir_ / "profile").string(),
         "--log-net-log=" + (dir_ / "net.json").string(), "--window-size=1280,800",
         "--virtual-time-budget=5000", "--dump-dom", "file://" + (dir_ / "page.html").string()});
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  }

  /// The addresses that the page asked for. What the browser wants for itself has "not an origin" as initiator.
  std::vector<std::string> requests() {
    std::vector<std::string> found;
    const std::regex address("\"url\":\"([^\"]*)\"");
    for (const auto& line : split(test::read_file(dir_ / "net.json"), '\n')) {
      std::smatch url;
      const bool is_request = line.find("\"initiator\":\"") != std::string::npos;
      const bool is_own = line.find("\"initiator\":\"not an origin\"") != std::string::npos;
      if (is_request && !is_own && std::regex_search(line, url, address)) found.push_back(url[1]);
    }
    return found;
  }

  std::string sample() {
    test::write_sample_sweep(dir_ / "sweep");
    const std::vector<std::filesystem::path> folders = {dir_ / "sweep"};
    return to_html(read_tables(folders));
  }

  test::TempDir dir_;
};

bool has(const std::string& dom, const std::string& part) { return dom.find(part) != std::string::npos; }

/// How many series the library has drawn on each canvas, in their order.
std::vector<int> drawn(const std::string& dom) {
  std::vector<int> counts;
  const std::regex canvas("<canvas [^>]*>");
  for (std::sregex_iterator at(dom.begin(), dom.end(), canvas), end; at != end; ++at) {
    std::smatch count;
    const std::string tag = at->str();
    counts.push_back(std::regex_search(tag, count, std::regex("data-drawn=\"([0-9]+)\"")) ? std::stoi(count[1])
                                                                                          : 0);
  }
  return counts;
}

TEST_F(Browser, DrawsEveryChartWithoutAnErrorOrARequest) {
  const std::string dom = open(sample());
  // Curves: a line and two edges of its band for each of 6 variants; bars and diagnostics: 3 boundaries.
  EXPECT_THAT(drawn(dom), testing::ElementsAre(18, 18, 18, 0, 0, 3, 3, 9, 9));
  EXPECT_FALSE(has(dom, "data-errors"));
  EXPECT_TRUE(has(dom, "aria-pressed=\"true\""));
  EXPECT_TRUE(has(dom, "<div class=\"diagnostics part\">"));
  EXPECT_THAT(requests(), testing::IsEmpty());
}

/// The page with a script of the test's at its end, which the policy would refuse.
std::string driven(std::string page, const std::string& script) {
  page.at(page.find("Content-Security-Policy")) = 'x';
  return page.insert(page.find("</body>"), "<script>" + script + "</script>");
}

TEST_F(Browser, TheLossOverStepsIsDrawnWhereItWasMeasured) {
  std::string line = test::epoch_line(0, 2.5, 10, 11);
  line.insert(1, R"("evaluations":[{"step":40,"test":{"off":{"loss":2},"on":{"loss":3}}},)"
                 R"({"step":80,"test":{"off":{"loss":1},"on":{"loss":2}}}],)");
  test::write_run(dir_ / "run", "name", 0, "done", line);
  const std::vector<std::filesystem::path> folders = {dir_ / "run"};
  const std::string dom = open(driven(to_html(read_tables(folders)), R"(
    document.querySelectorAll("canvas")[4].dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight"}));)"));
  EXPECT_THAT(drawn(dom), testing::ElementsAre(1, 1, 1, 1, 1, 1, 1, 0, 0));
  EXPECT_FALSE(has(dom, "data-errors"));
  EXPECT_TRUE(has(dom, "<div class=\"steps part\">"));
  EXPECT_TRUE(has(dom, "aria-live=\"polite\">Step 40, name: 3.0000 (1 seed)"));
}

TEST_F(Browser, ARunThatHasJustBegunMakesAPage) {
  test::write_run(dir_ / "run", "name</script>", 0, "running", "");
  const std::vector<std::filesystem::path> folders = {dir_ / "run"};
  const std::string dom = open(to_html(read_tables(folders)));
  EXPECT_THAT(drawn(dom), testing::ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 0));
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
      document.querySelector("canvas").dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight"}));
    })"));
  EXPECT_THAT(drawn(dom), testing::ElementsAre(15, 15, 15, 0, 0, 3, 3, 9, 9));
  EXPECT_FALSE(has(dom, "data-errors"));
  EXPECT_TRUE(has(dom, "<dialog id=\"details\" aria-labelledby=\"details-title\" open"));
  EXPECT_TRUE(has(dom, "<dt>Status</dt><dd>diverged</dd>"));
  EXPECT_TRUE(has(dom, "<pre id=\"details-config\" tabindex=\"0\">name = \"fw4-bw2-seed1\"\nseed = 1\n"));
  EXPECT_TRUE(has(dom, "aria-live=\"polite\">Epoch 2, fw4-bw2: "));
}

TEST_F(Browser, PaperIsLightAndShowsEveryTable) {
  const std::string dom = open(driven(sample(), "window.dispatchEvent(new Event('beforeprint'));"));
  EXPECT_THAT(drawn(dom), testing::ElementsAre(18, 18, 18, 0, 0, 3, 3, 9, 9));
  EXPECT_TRUE(has(dom, "height: 300px; width: 430px;"));
  EXPECT_TRUE(has(dom, "<details class=\"more\" open"));
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
