// A page that is served takes the content of the next one.

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "strait/report/changes.h"
#include "strait/report/networks.h"
#include "tests/report/browser.h"

namespace strait::report {
namespace {

std::vector<Table> state_of_sweep(int variants, double accuracy) {
  Table table{"t", "Growing", {}};
  for (int i = 0; i < variants; ++i) {
    Run run = scored_run(0, 50, accuracy + i, 1e5 * (9 - i));
    run.epochs[0].step_seconds.assign(kNetworks, 1);
    table.variants.push_back({std::string(1, static_cast<char>('a' + i)), {}, {run}});
  }
  return {table};
}

class WatchedPage : public Browser {
 protected:
  /// The first page after `script`, while its server has the second and says `error`. `script` has look().
  std::string watching(const std::string& script, const std::string& error = "") {
    std::string next = nlohmann::json(to_html(state_of_sweep(3, 70), {.title = "Next", .version = "2"})).dump();
    for (size_t at = 0; (at = next.find('<', at)) != std::string::npos;) next.replace(at, 1, "\\u003c");
    return open(driven(to_html(state_of_sweep(2, 60), {.version = "1"}), R"(
      const page = )" + next + R"(;
      const state = {version: ")" + (error.empty() ? "2" : "1") + R"(", error: ")" +
                                                                             error + R"("};
      window.fetch = async () => ({text: async () => page, json: async () => state});
      (async () => {)" + script + "})();"));
  }
};

TEST_F(WatchedPage, TakesTheNextAndKeepsWhatIsChosen) {
  const std::string dom = watching(R"(
    document.querySelectorAll(".chip")[1].click();
    document.querySelector("[data-choice=differences]").click();
    const axis = document.querySelector("[data-choice=axis]");
    axis.value = "ratio";
    axis.dispatchEvent(new Event("change", {bubbles: true}));
    document.querySelector("th[data-column='4'] button").click();
    document.querySelector("th[data-column='4'] button").focus();
    document.querySelector("details.more").open = true;
    const enter = (name, value) => {
      const input = document.querySelector("[data-choice=" + name + "]");
      input.value = value;
      input.dispatchEvent(new Event("input", {bubbles: true}));
    };
    enter("rate", 7);
    enter("target", 71.5);
    await live.look();
    document.body.dataset.entered = document.querySelector(".networks output").textContent + "/" +
      document.querySelector("[data-choice=target]").value + "/" + document.querySelector(".fastest").textContent;
    document.body.dataset.rows = [...document.querySelectorAll(".results tbody tr")]
      .map(({cells}) => cells[0].textContent + cells[4].textContent).join("|");
    document.body.dataset.axis = document.querySelector("[data-choice=axis]").value;
    document.body.dataset.pressed = [...document.querySelectorAll(".chip")]
      .map((chip) => chip.textContent + chip.getAttribute("aria-pressed")).join(" ");
    document.body.dataset.open = document.querySelector("details.more").open;
    document.body.dataset.charts = figures.length + " " + Object.keys(Chart.instances).length;)");
  EXPECT_TRUE(has(dom, "data-rows=\"a70.00 (n = 1)|b+1.00 (n = 1)|c+2.00 (n = 1)\""))
      << dom.substr(dom.find("data-rows"), 200);
  EXPECT_TRUE(has(dom, "data-axis=\"ratio\""));
  EXPECT_TRUE(has(dom, "data-pressed=\"atrue bfalse ctrue\""));
  EXPECT_TRUE(has(dom, "data-open=\"true\""));
  EXPECT_TRUE(has(dom, "data-charts=\"8 8\"")) << "those of the first are gone";
  EXPECT_TRUE(has(
      dom,
      "data-entered=\"2 Gbps/71.5/Fastest to accuracy ≥ 71.5 % with a latency of 10 ms: c at every rate.\""))
      << dom.substr(dom.find("data-entered"), 200);
  EXPECT_TRUE(has(dom, "<h1>Next</h1>"));
  EXPECT_TRUE(has(dom, "<title>Next – strait report</title>"));
  EXPECT_TRUE(has(dom, "data-named=\"2\""));
  EXPECT_FALSE(has(dom, "data-errors")) << dom.substr(dom.find("data-errors"), 300);
}

TEST_F(WatchedPage, SaysThatTheRunsCannotBeRead) {
  const std::string dom = watching("await live.look();", "status.json: <b>");
  EXPECT_TRUE(has(dom, "this is their last state. status.json: &lt;b&gt;</p>"));
  EXPECT_TRUE(has(dom, "<h1>Growing</h1>"));
}

TEST_F(WatchedPage, SaysThatNobodyAnswers) {
  const std::string dom = watching("window.fetch = async () => { throw new Error(); }; await live.look();");
  EXPECT_TRUE(has(dom, "strait report no longer answers"));
  EXPECT_FALSE(has(dom, "data-errors"));
}

TEST_F(WatchedPage, APageThatIsAFileAsksForNothing) {
  const std::string page = to_html(state_of_sweep(2, 60));
  EXPECT_FALSE(has(page, "connect-src"));
  const std::string dom = open(driven(page, R"(
    window.fetch = () => { document.body.dataset.asked = true; };
    setTimeout(() => { document.body.dataset.later = true; }, 4500);)"));
  EXPECT_TRUE(has(dom, "data-later=\"true\""));
  EXPECT_FALSE(has(dom, "data-asked"));
}

TEST(Changes, AreThoseOfTheFilesThatAReportReads) {
  const test::TempDir dir;
  const std::vector<std::filesystem::path> folders = {dir.path()};
  test::write_run(dir / "a/run", "run", 0, "running", "");
  test::write_file(dir / "a/run/checkpoint.bin", "1");
  std::string before = files_of(folders);
  const auto changes = [&] {
    const std::string now = files_of(folders);
    return std::exchange(before, now) != now;
  };
  EXPECT_FALSE(changes());
  test::write_file(dir / "a/run/checkpoint.bin", "12");
  EXPECT_FALSE(changes()) << "no report reads it";
  test::write_file(dir / "a/run/metrics.jsonl", test::epoch_line(0, 1, 2, 3));
  EXPECT_TRUE(changes());
  test::write_run(dir / "a/other", "other", 0, "running", "");
  EXPECT_TRUE(changes());
  test::write_file(dir / "a/sweep.json", "{}");
  EXPECT_TRUE(changes());
  std::filesystem::remove_all(dir / "a/other");
  EXPECT_TRUE(changes());
  std::filesystem::remove_all(dir / "a");
  EXPECT_TRUE(changes());
  EXPECT_EQ(before, "");
}

}  // namespace
}  // namespace strait::report
