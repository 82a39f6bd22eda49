// A page that is served takes the content of the next one.

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "strait/report/changes.h"
#include "strait/report/networks.h"
#include "tests/report/browser.h"

namespace strait::report {
namespace {

Variant variant_named(const std::string& name, double accuracy, double wire) {
  Run run = scored_run(0, 50, accuracy, wire);
  run.epochs[0].step_seconds.assign(kNetworks, 1);
  return {name, {}, {run}};
}

std::vector<Table> state_of_sweep(int variants, double accuracy) {
  Table table{"t", "Growing", {}};
  for (int i = 0; i < variants; ++i) {
    table.variants.push_back(
        variant_named(std::string(1, static_cast<char>('a' + i)), accuracy + i, 1e5 * (9 - i)));
  }
  return {table};
}

class WatchedPage : public Browser {
 protected:
  /// The first page after `script`, while its server has the second and says `error`. `script` has look().
  std::string watching(const std::string& script, const std::string& error = "",
                       const std::vector<Table>& first = state_of_sweep(2, 60),
                       const std::vector<Table>& second = state_of_sweep(3, 70)) {
    std::string next = nlohmann::json(to_html(second, {.title = "Next", .version = "2"})).dump();
    for (size_t at = 0; (at = next.find('<', at)) != std::string::npos;) next.replace(at, 1, "\\u003c");
    return open(driven(to_html(first, {.version = "1"}), R"(
      const page = )" + next + R"(;
      const state = {version: ")" + (error.empty() ? "2" : "1") +
                                                             R"(", error: ")" + error + R"("};
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

TEST_F(WatchedPage, TablesOfOneTitleKeepWhatWasChosenInEach) {
  const auto two = [](double accuracy) {
    auto tables = state_of_sweep(2, accuracy);
    tables.push_back(tables[0]);
    return tables;
  };
  const std::string dom = watching(R"(
    document.querySelectorAll("section.table")[1].querySelectorAll(".chip")[0].click();
    await live.look();
    document.body.dataset.pressed = [...document.querySelectorAll(".chip")]
      .map((chip) => chip.textContent + chip.getAttribute("aria-pressed")).join(" ");)",
                                   "", two(60), two(70));
  EXPECT_TRUE(has(dom, "data-pressed=\"atrue btrue afalse btrue\""))
      << dom.substr(dom.find("data-pressed"), 100);
  EXPECT_FALSE(has(dom, "data-errors"));
}

TEST_F(WatchedPage, TheUsualBaselineFollowsTheRunsAndTheReadersStays) {
  const std::vector<Table> first = state_of_sweep(2, 60);
  auto second = state_of_sweep(2, 70);
  second[0].variants.push_back(variant_named("none", 80, 1e6));
  const std::string script = R"(
    const baseline = () => {
      const select = document.querySelector(".compare select");
      return select.selectedOptions[0].textContent;
    };
    const differences = () => document.querySelector("[data-choice=differences]");
    const pick = (name) => {
      const select = document.querySelector(".compare select");
      [...select.options].find(({textContent}) => textContent === name).selected = true;
      select.dispatchEvent(new Event("change", {bubbles: true}));
    };)";
  const std::string usual = watching(script + R"(
    document.body.dataset.before = baseline();
    differences().click();
    await live.look();
    document.body.dataset.after = baseline() + differences().checked;)",
                                     "", first, second);
  EXPECT_TRUE(has(usual, "data-before=\"a\"") && has(usual, "data-after=\"nonetrue\""))
      << usual.substr(usual.find("data-after"), 100);
  const std::string readers = watching(script + R"(
    pick("b");
    pick("a");
    for (const version of ["2", "3"]) {
      state.version = version;
      await live.look();
    }
    document.body.dataset.after = baseline() + differences().checked;)",
                                       "", first, second);
  EXPECT_TRUE(has(readers, "data-after=\"atrue\"")) << readers.substr(readers.find("data-after"), 100);
  const std::string same = watching(script + R"(
    pick("none");
    await live.look();
    document.body.dataset.own = !("usual" in document.querySelector(".compare select").dataset);)",
                                    "", second, second);
  EXPECT_TRUE(has(same, "data-own=\"true\"")) << "although it is the usual one";
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

TEST(Changes, AreSeenBesideAStrayFileAndBehindALinkOfASweep) {
  const test::TempDir dir;
  const std::vector<std::filesystem::path> folders = {dir / "runs"};
  test::write_run(dir / "runs/all/a", "a", 0, "running", "");
  test::write_file(dir / "runs/all/config.toml", "");  // of no run
  std::filesystem::create_directories(dir / "runs/sweep");
  test::write_file(dir / "runs/sweep/metrics.jsonl", "");  // likewise
  test::write_file(dir / "runs/sweep/sweep.json",
                   R"({"name": "s", "runs": [)" + test::sweep_entry("linked", 0, "running") + "]}");
  test::write_run(dir / "elsewhere", "linked-seed0", 0, "running", "");
  std::filesystem::create_directory_symlink(dir / "elsewhere", dir / "runs/sweep/linked-seed0");
  for (const auto& run : {dir / "runs/all/a", dir / "elsewhere"}) {
    const std::string before = files_of(folders);
    test::write_file(run / "metrics.jsonl", test::epoch_line(0, 1, 2, 3));
    EXPECT_NE(files_of(folders), before) << run;
  }
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
  std::filesystem::remove_all(dir / "a/other");
  EXPECT_TRUE(changes());
  test::write_file(dir / "a/sweep.json", "{}");
  EXPECT_TRUE(changes());
  std::filesystem::remove_all(dir / "a");
  EXPECT_TRUE(changes());
  EXPECT_EQ(before, "");
}

}  // namespace
}  // namespace strait::report
