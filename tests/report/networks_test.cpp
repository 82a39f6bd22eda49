// What training would take over networks: the times, and their pictures.

#include "strait/report/networks.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "strait/base/units.h"
#include "tests/report/browser.h"
#include "tests/report/network_index.h"

namespace strait::report {
namespace {

using testing::DoubleEq;
using testing::IsEmpty;

/// Seconds of a step over links of bits a second and seconds of latency.
using StepSeconds = std::function<double(double rate, double latency)>;

std::vector<double> over_networks(const StepSeconds& step) {
  std::vector<double> seconds(kNetworks);
  for (size_t rate = 0; rate < kNetworkRates.size(); ++rate) {
    for (size_t latency = 0; latency < kNetworkLatencies.size(); ++latency) {
      seconds[network_index(rate, latency)] = step(8 * parse_bandwidth(kNetworkRates[rate], "rate"),
                                                   parse_seconds(kNetworkLatencies[latency], "latency"));
    }
  }
  return seconds;
}

/// Epochs of 10 steps with these accuracies, compression on; without, they are 5 less.
Run timed_run(uint64_t seed, const std::vector<double>& accuracies, const StepSeconds& step) {
  Run run;
  run.seed = seed;
  run.status = Status::done;
  for (const double accuracy : accuracies) {
    Epoch epoch;
    epoch.number = static_cast<int>(run.epochs.size());
    epoch.steps = 10;
    epoch.off = {{"accuracy", accuracy - 5}};
    epoch.on = {{"accuracy", accuracy}};
    epoch.step_seconds = over_networks(step);
    run.epochs.push_back(epoch);
  }
  return run;
}

StepSeconds always(double seconds) {
  return [=](double /*rate*/, double /*latency*/) { return seconds; };
}

TEST(TimedScores, AddUpEachEpochsSteps) {
  report::Run run = timed_run(0, {50, 60}, always(0));
  run.epochs[0].step_seconds = over_networks([](double rate, double latency) { return 1e8 / rate + latency; });
  run.epochs[1].step_seconds = over_networks([](double rate, double) { return 2e8 / rate; });
  run.epochs[0].evaluations = {{4, {{"accuracy", 30}}, {{"accuracy", 31}}}};
  run.epochs[1].evaluations = {{14, {}, {}}, {20, {}, {}}};
  const auto scores = timed_scores(run);
  ASSERT_EQ(scores.size(), 4U) << "the last evaluation is that of the epoch";
  const size_t network = network_index(3, 2);
  ASSERT_EQ(kNetworkRates[3], "100Mbps");
  ASSERT_EQ(kNetworkLatencies[2], "50ms");
  EXPECT_EQ(scores[0].steps, 4);
  EXPECT_EQ(scores[0].off->at("accuracy"), 30);
  EXPECT_EQ(scores[0].on->at("accuracy"), 31);
  EXPECT_THAT(scores[0].seconds[network], DoubleEq(4 * 1.05));
  EXPECT_EQ(scores[1].steps, 10);
  EXPECT_EQ(scores[1].on->at("accuracy"), 50);
  EXPECT_THAT(scores[1].seconds[network], DoubleEq(10 * 1.05));
  EXPECT_THAT(scores[2].seconds[network], DoubleEq(10 * 1.05 + 4 * 2));
  EXPECT_EQ(scores[3].steps, 20);
  EXPECT_THAT(scores[3].seconds[network], DoubleEq(10 * 1.05 + 10 * 2));
  EXPECT_THAT(scores[3].seconds[network_index(kNetworkRates.size() - 1, 2)], DoubleEq(10 * 0.05));
}

TEST(TimedScores, AreNoneWhereAnEpochsTimeIsNotKnown) {
  report::Run run = timed_run(0, {50, 60}, always(1));
  run.epochs[0].step_seconds.clear();
  EXPECT_THAT(timed_scores(run), IsEmpty());
  run = timed_run(0, {50, 60}, always(1));
  run.epochs.erase(run.epochs.begin());
  EXPECT_THAT(timed_scores(run), IsEmpty()) << "the time before is not known";
  run = timed_run(0, {50, 60}, always(1));
  run.epochs[0].off = run.epochs[0].on = {};
  ASSERT_EQ(timed_scores(run).size(), 1U) << "an epoch that was not scored";
  EXPECT_EQ(timed_scores(run)[0].seconds[0], 20);
}

/// What follows `begin` in the text, for messages.
std::string part(const std::string& text, const std::string& begin) {
  const size_t at = text.find(begin);
  return at == std::string::npos ? "nothing" : text.substr(at, 300);
}

class Networks : public Browser {
 protected:
  /// The page of these variants after `script`, which has the controls of its first table.
  std::string after(std::vector<Variant> variants, const std::string& script) {
    return open(driven(to_html({{"t", "Timed", std::move(variants)}}), R"(
      const place = document.querySelector(".networks");
      const set = (name, value) => {
        const control = place.querySelector("[data-choice=" + name + "]");
        control.value = value;
        control.dispatchEvent(new Event(control.tagName === "SELECT" ? "change" : "input", {bubbles: true}));
      };
      const linesOf = (name) => figures.find(({canvas}) => canvas.dataset.timed === name).chart.data.datasets
        .filter(({band}) => !band)
        .map(({label, data}) => label + data.map(({x, y}) => " " + x + ":" + Number(y.toPrecision(5))).join(""))
        .join("|");
      const note = (name, value) => { document.body.dataset[name] = value; };)" +
                                                                           script));
  }
};

/// That a step has from its own computation, 1e8 bits and the latency.
StepSeconds usual_step(double compute) {
  return [=](double rate, double latency) { return compute + 1e8 / rate + latency; };
}

TEST_F(Networks, PickingOneChangesTheCurve) {
  const std::string dom =
      after({{"a", {}, {timed_run(0, {50, 60}, usual_step(1))}},
             {"b", {}, {timed_run(0, {40, 52}, usual_step(2)), timed_run(1, {44, 54}, usual_step(4))}}},
            R"(
    note("first", linesOf("curves"));
    set("rate", 10);
    note("second", linesOf("curves"));
    note("shown", place.querySelector("output").textContent);
    set("latency", "3");
    set("timed-side", "off");
    note("third", linesOf("curves"));)");
  EXPECT_TRUE(has(dom, "data-first=\"a 20.1:50 40.2:60|b 40.1:42 80.2:53\"")) << "100 Mbps with 10 ms";
  EXPECT_TRUE(has(dom, "data-second=\"a 10.1:50 20.2:60|b 30.1:42 60.2:53\"")) << "unlimited with 10 ms";
  EXPECT_TRUE(has(dom, "data-shown=\"unlimited\""));
  EXPECT_TRUE(has(dom, "data-third=\"a 11:45 22:55|b 31:37 62:48\"")) << "unlimited with 100 ms";
  EXPECT_FALSE(has(dom, "data-errors")) << part(dom, "data-errors");
}

/// Straight lines over the logarithms of rate and time, so that what is between two rates is exact. `steep` and
/// `even` are as fast at 300 Mbps; `between` is below both from 243 Mbps (0.81 times 300) to 370 Mbps (over
/// 0.81), which are both between the rates 200 and 500 Mbps.
std::vector<Variant> crossing() {
  return {{"steep", {}, {timed_run(0, {70}, [](double rate, double) { return 3e8 / rate; })}},
          {"even", {}, {timed_run(0, {70}, always(1))}},
          {"between", {}, {timed_run(0, {70}, [](double rate, double) {
             return 0.9 * std::sqrt(3e8 / std::min(rate, 1e15));
           })}}};
}

TEST_F(Networks, SaysWhereTheLinesCross) {
  const std::string dom = after(crossing(), R"(
    note("times", linesOf("times").split("|")[0]);
    note("all", place.querySelector(".fastest").textContent);
    document.querySelectorAll(".chip")[2].click();
    note("two", place.querySelector(".fastest").textContent);
    document.querySelectorAll(".chip")[1].click();
    note("one", place.querySelector(".fastest").textContent);)");
  EXPECT_TRUE(has(dom,
                  "data-all=\"Fastest to accuracy ≥ 70 % with a latency of 10 ms: even up to 240 Mbps, "
                  "between from 240 Mbps to 370 Mbps, steep from 370 Mbps on.\""))
      << part(dom, "data-all");
  EXPECT_TRUE(has(dom, ": even up to 300 Mbps, steep from 300 Mbps on.\""));
  EXPECT_TRUE(has(dom, ": steep at every rate.\""));
  EXPECT_TRUE(has(dom,
                  "data-times=\"steep 10000000:300 20000000:150 50000000:60 100000000:30 200000000:15 "
                  "500000000:6 1000000000:3 2000000000:1.5 5000000000:0.6 10000000000:0.3\""));
  EXPECT_FALSE(has(dom, "data-errors")) << part(dom, "data-errors");
}

TEST_F(Networks, UnlimitedLinksHaveAFastestOfTheirOwn) {
  const std::string dom =
      after({{"near", {}, {timed_run(0, {70}, [](double rate, double) { return 1 + 1e6 / rate; })}},
             {"far", {}, {timed_run(0, {70}, [](double rate, double) { return 0.9 + 3e9 / rate; })}}},
            "");
  EXPECT_TRUE(has(dom, ": near at every rate; over unlimited links far.</p>"));
}

TEST_F(Networks, TheTargetIsTheReaders) {
  std::vector<Variant> variants = {
      {"best", {}, {timed_run(0, {50, 68.19}, always(1)), timed_run(1, {66.55, 40}, always(3))}},
      {"half", {}, {timed_run(0, {61.78, 60}, always(1)), timed_run(1, {50, 62}, always(1))}},
      {"worst", {}, {timed_run(0, {20, 30}, always(1))}},
      {"early", {}, {timed_run(0, {99}, always(1))}},
      {"unknown", {}, {timed_run(0, {99}, always(1)), timed_run(1, {99}, always(1))}}};
  variants[3].runs[0].status = Status::running;
  variants[4].runs[0].epochs[0].step_seconds.clear();
  variants[4].runs[1].epochs[0].step_seconds.clear();
  const std::string dom = after(variants, R"(
    const target = place.querySelector("[data-choice=target]");
    const told = () => target.value + "/" + place.querySelector(".fastest").textContent + "/" +
      place.querySelector(".missing").textContent;
    const times = () => linesOf("times").split("|").map((line) => line.split(" ", 2).join(" ")).join("|");
    note("usual", told());
    note("usualTimes", times());
    set("target", "67");
    note("own", told());
    note("ownTimes", times());
    set("target", "");
    note("again", told());
    set("timed-side", "off");
    note("off", target.value);
    set("target", "100");
    note("none", told());)");
  const std::string others =
      " No run has ended: early. Without scores or times that can be simulated: unknown.\"";
  EXPECT_TRUE(has(dom,
                  "data-usual=\"61.7/Fastest to accuracy ≥ 61.7 % with a latency of 10 ms: half at every rate./"
                  "Never reach it: worst." +
                      others))
      << part(dom, "data-usual=");
  EXPECT_TRUE(has(dom, "data-usual-times=\"best 10000000:25|half 10000000:15\""))
      << "20 and 30; 10 and 20 seconds";
  EXPECT_TRUE(has(dom,
                  "data-own=\"67/Fastest to accuracy ≥ 67 % with a latency of 10 ms: best at every rate./"
                  "Reached by some seeds alone: best (1 of 2). Never reach it: half, worst." +
                      others));
  EXPECT_TRUE(has(dom, "data-own-times=\"best 10000000:20\""));
  EXPECT_TRUE(has(dom, "data-again=\"61.7/Fastest to accuracy ≥ 61.7 %")) << "an empty box is the usual target";
  EXPECT_TRUE(has(dom, "data-off=\"56.7\""));
  EXPECT_TRUE(has(dom, "data-none=\"100//Never reach it: best, half, worst." + others));
  EXPECT_FALSE(has(dom, "data-errors")) << part(dom, "data-errors");
}

TEST_F(Networks, ARunThatDivergedBeforeAnythingWasScoredReachesNothing) {
  std::vector<Variant> variants = {{"some", {}, {timed_run(0, {70}, always(1)), timed_run(1, {}, always(1))}},
                                   {"all", {}, {timed_run(0, {60}, always(2))}},
                                   {"none", {}, {timed_run(0, {}, always(1))}}};
  variants[0].runs[1].status = variants[2].runs[0].status = Status::diverged;
  const std::string dom = after(variants, R"(
    note("told", place.querySelector("[data-choice=target]").value + "/" + place.querySelector(".missing").textContent);)");
  EXPECT_TRUE(has(dom, "data-told=\"60/Reached by some seeds alone: some (1 of 2). Never reach it: none.\""))
      << part(dom, "data-told=");
  EXPECT_FALSE(has(dom, "data-errors")) << part(dom, "data-errors");
}

TEST_F(Networks, ALossIsReachedFromAbove) {
  std::vector<Variant> variants;
  for (const double loss : {1.2345, 3.0}) {
    report::Run run = timed_run(0, {0, 0}, always(1));
    run.epochs[0].off = run.epochs[0].on = {{"loss", 4}};
    run.epochs[1].off = run.epochs[1].on = {{"loss", loss}};
    variants.push_back({loss < 2 ? "low" : "high", {}, {run}});
  }
  const std::string dom = after(variants, R"(
    note("usual", place.querySelector(".fastest").textContent);
    set("target", "1.24");
    note("times", linesOf("times").split(" ", 2).join(" "));)");
  EXPECT_TRUE(has(dom, "data-usual=\"Fastest to loss ≤ 3 with a latency of 10 ms: low at every rate.\""))
      << part(dom, "data-usual=");
  EXPECT_TRUE(has(dom, "data-times=\"low 10000000:20\""));
  EXPECT_TRUE(has(dom, "Never reach it: high.</p>"));
}

TEST_F(Networks, RunsUnderWayHaveACurveAndNoTarget) {
  std::vector<Variant> variants = {{"early", {}, {timed_run(0, {50, 60}, always(1))}}};
  variants[0].runs[0].status = Status::running;
  const std::string dom = after(variants, R"(
    note("curve", linesOf("curves"));
    note("times", linesOf("times"));
    note("target", place.querySelector("[data-choice=target]").value);
    note("axis", figures.find(({canvas}) => canvas.dataset.timed === "times").chart.scales.y.options.title.text);)");
  EXPECT_TRUE(has(dom, "data-curve=\"early 10:50 20:60\""));
  EXPECT_TRUE(has(dom, "data-times=\"\""));
  EXPECT_TRUE(has(dom, "data-target=\"\""));
  EXPECT_TRUE(has(dom, "No run has ended: early.</p>"));
  EXPECT_TRUE(has(dom, "data-axis=\"seconds to a target\""));
  EXPECT_FALSE(has(dom, "data-errors")) << part(dom, "data-errors");
}

TEST_F(Networks, ATableWithoutTimesHasNoSuchPictures) {
  const std::string dom = open(to_html({{"t", "t", {{"a", {}, {scored_run(0, 50, 60, 1e5)}}}}}));
  EXPECT_TRUE(has(dom, "<div class=\"networks part\" hidden"));
  EXPECT_FALSE(has(dom, "data-errors"));
}

}  // namespace
}  // namespace strait::report
