// What training would take over a network that the reader picks: quality over seconds, and the time to a target over the
// rate of the links, with the variant that is the fastest from which rate to which.

const kUsualRate = "100 Mbps";
const kUsualLatency = "10 ms";
const kEnded = ["done", "diverged"];

// Four digits are more than a simulation is good for.
function secondsText(seconds) {
  const [size, unit] = [[86400, "days"], [3600, "h"], [60, "min"], [1, "s"], [1e-3, "ms"]]
    .find(([size]) => seconds >= 2 * size) ?? [1e-3, "ms"];
  return Number((seconds / size).toPrecision(3)) + " " + unit;
}

function rateText(bits) {
  const power = Math.min(Math.max(Math.floor(Math.log10(bits) / 3), 1), 4);
  return Number((bits / 1000 ** power).toPrecision(2)) + " " + ["bps", "kbps", "Mbps", "Gbps", "Tbps"][power];
}

function isAsGood(score, target, higherIsBetter) {
  return score !== null && (higherIsBetter ? score >= target : score <= target);
}

// A point for each number of steps after which runs were scored: mean seconds, then the score as an estimate.
function timedCurve({runs}, side, network) {
  const bySteps = new Map();
  for (const {timed} of runs) {
    for (const {steps, [side]: score, seconds} of timed) {
      if (score === null) continue;
      bySteps.set(steps, [...(bySteps.get(steps) ?? []), [seconds[network], score]]);
    }
  }
  return [...bySteps.entries()].sort((a, b) => a[0] - b[0]).map(([, found]) => {
    const {mean, error} = meanAndError(found.map(([, score]) => score));
    return [meanAndError(found.map(([seconds]) => seconds)).mean, mean, error, found.length];
  });
}

// Whether it can be said when the run reaches a target: it was simulated, or it diverged before anything was scored.
function isTimed({status, timed, epochs_done: epochs}) {
  return timed.length > 0 || (status === "diverged" && epochs === 0);
}

function judgedRuns({runs}) {
  return runs.filter((run) => kEnded.includes(run.status) && isTimed(run));
}

// For every network the seconds of each seed that reached the target, at its first evaluation that had it.
function timesToTarget(variant, side, target, higherIsBetter) {
  const runs = judgedRuns(variant);
  const reached = runs.map(({timed}) => timed.find(({[side]: score}) => isAsGood(score, target, higherIsBetter)))
    .filter((score) => score);
  return {seeds: runs.length, reached: reached.map(({seconds}) => seconds)};
}

// A target that at least half of the variants reach with every seed, with three digits; null where none is scored.
function usualTarget(variants, side, higherIsBetter) {
  const worse = (a, b) => (higherIsBetter ? a - b : b - a);
  const bestOf = ({timed}) => timed.map(({[side]: score}) => score).filter((score) => score !== null).sort(worse).at(-1);
  const reached = variants.map((variant) => judgedRuns(variant).map(bestOf))
    .filter((bests) => bests.length > 0 && bests.every((best) => best !== undefined))
    .map((bests) => bests.sort(worse)[0]).sort(worse);
  if (reached.length === 0) return null;
  const middle = reached[Math.floor((reached.length - 1) / 2)];
  if (middle === 0) return 0;
  const unit = 10 ** (Math.floor(Math.log10(Math.abs(middle))) - 2);
  const rounded = (higherIsBetter ? Math.floor(middle / unit) : Math.ceil(middle / unit)) * unit;
  return Number(rounded.toPrecision(3));
}

// Of lines with a time at each rate the fastest ones by rising rate: [{name, from}], where `from` is null for the first
// and else the rate at which it crosses the one before. Between two rates the logarithm of a time is a straight line over
// that of the rate. Of equal ones the first stays.
function fastestOver(rates, lines) {
  const at = ({times}, i, part) => Math.log(times[i]) * (1 - part) + Math.log(times[i + 1]) * part;
  let own = lines.reduce((best, line) => (line.times[0] < best.times[0] ? line : best));
  const fastest = [{name: own.name, from: null}];
  for (let i = 0; i + 1 < rates.length; ++i) {
    for (let part = 0; part < 1;) {
      // The line that comes below the own one first, and of several the one that is the lowest at the next rate.
      let next = null;
      for (const line of lines) {
        const [lead, end] = [at(line, i, part) - at(own, i, part), at(line, i, 1) - at(own, i, 1)];
        if (line === own || end >= 0) continue;
        const where = lead <= 0 ? part : part + (1 - part) * lead / (lead - end);
        if (!next || where < next.where || (where === next.where && end < next.end)) next = {line, where, end};
      }
      if (!next) break;
      own = next.line;
      part = next.where;
      if (i + part === 0) fastest.pop();
      fastest.push({name: own.name, from: i + part === 0 ? null : rates[i] * (rates[i + 1] / rates[i]) ** part});
    }
  }
  return fastest;
}

// In words, which variant is the fastest from which rate to which.
function fastestText(fastest, last) {
  const parts = fastest.map(({name, from}, i) => {
    const to = fastest[i + 1]?.from;
    if (from === null) return name + (to ? " up to " + rateText(to) : " at every rate");
    return name + " from " + rateText(from) + (to ? " to " + rateText(to) : " on");
  });
  const end = last === fastest.at(-1).name ? "" : "; over unlimited links " + last;
  return parts.join(", ") + end + ".";
}

// A logarithmic scale where the longest training takes more than eight times as long as the shortest.
function secondsScale(series) {
  const ends = series.map(({points}) => points.at(-1)?.[0]).filter((seconds) => seconds > 0);
  const title = "seconds of training";
  if (ends.length === 0 || Math.max(...ends) <= 8 * Math.min(...ends)) {
    return {type: "linear", beginAtZero: true, ...scaleOf(title, {callback: significant, maxTicksLimit: 6})};
  }
  return logScale(title, logRange(series.flatMap(({points}) => points.map(([seconds]) => seconds))), significant);
}

function qualityOverTime({variants, side, network, metric}) {
  const series = variants.map((variant) => ({...variant, points: timedCurve(variant, side, network)}));
  return lineConfig({
    series, label: metric.label + (metric.unit ? ", " + metric.unit : ""), legend: false, along: "seconds",
    format: (value) => value.toFixed(2) + (metric.unit ? " " + metric.unit : ""), placeText: secondsText,
    xScale: secondsScale(series),
  });
}

// A point for each rate: bits a second, then the seconds as an estimate.
function targetLines(variants, rates, indexOf, found) {
  return variants.map((variant, i) => ({
    ...variant,
    points: found[i].reached.length === 0 ? [] : rates.map(({bits_per_second: bits}, rate) => {
      const {mean, error} = meanAndError(found[i].reached.map((seconds) => seconds[indexOf(rate)]));
      return [bits, mean, error, found[i].reached.length];
    }),
  })).filter(({points}) => points.length > 0);
}

function timeOverRate({lines, limited, target}) {
  const series = lines.map((line) => ({...line, points: line.points.slice(0, limited.length)}));
  const values = series.flatMap(({points}) => points.map((point) => point[1]));
  const label = "seconds to " + target;
  return lineConfig({
    series, label, legend: false, along: "bits per second", format: secondsText, placeText: rateText,
    xScale: logScale("rate of the links", logRange(limited), rateText),
    yScale: logScale(label, values.length ? logRange(values) : [1, 10], significant),
  });
}

// The controls and the pictures of a table, where any of its runs was simulated.
class OverNetworks {
  constructor(section, table, choice) {
    this.place = section.querySelector(".networks");
    [this.table, this.choice] = [table, choice];
    const control = (name) => this.place.querySelector("[data-choice=" + name + "]");
    [this.rate, this.latency, this.side, this.target] = ["rate", "latency", "timed-side", "target"].map(control);
    const {rates, latencies} = data.networks;
    this.rate.max = rates.length - 1;
    this.rate.value = rates.findIndex(({text}) => text === kUsualRate);
    fillSelect(this.latency, latencies.map((text, index) => [String(index), text]));
    this.latency.value = latencies.indexOf(kUsualLatency);
    this.place.hidden = false;
    this.figures = [...this.place.querySelectorAll("canvas")].map((canvas) => new Figure(canvas, () => this[canvas.dataset.timed]()));
    this.target.addEventListener("input", () => { this.target.dataset.own = this.target.value; });
    for (const input of [this.rate, this.target]) input.addEventListener("input", () => this.show(input));
    this.place.addEventListener("change", (event) => this.show(event.target));
  }

  network(rate) {
    return rate * data.networks.latencies.length + Number(this.latency.value);
  }

  // The rate is the curves' alone, the target the times'.
  show(changed) {
    const [curves, times] = this.figures;
    if (changed !== this.target) curves.draw();
    if (changed !== this.rate) times.draw();
  }

  curves() {
    const {text} = data.networks.rates[Number(this.rate.value)];
    this.rate.setAttribute("aria-valuetext", text);
    this.place.querySelector("output").textContent = text;
    return qualityOverTime({variants: this.choice.of(this.table.variants), side: this.side.value,
      network: this.network(Number(this.rate.value)), metric: this.table.metric});
  }

  // What the reader has set, else the usual one, which is that of all variants, shown or not.
  targetValue() {
    const {own} = this.target.dataset;
    if (own && Number.isFinite(Number(own))) return Number(own);
    const usual = usualTarget(this.table.variants, this.side.value, this.table.metric.higher_is_better);
    if (document.activeElement !== this.target) this.target.value = usual ?? "";
    return usual;
  }

  times() {
    const {metric} = this.table;
    const [side, target] = [this.side.value, this.targetValue()];
    const variants = this.choice.of(this.table.variants);
    const found = variants.map((variant) => (target === null ? {seeds: judgedRuns(variant).length, reached: []}
      : timesToTarget(variant, side, target, metric.higher_is_better)));
    const text = target === null ? "a target"
      : metric.label + (metric.higher_is_better ? " ≥ " : " ≤ ") + target + (metric.unit ? " " + metric.unit : "");
    const lines = targetLines(variants, data.networks.rates, (rate) => this.network(rate), found);
    const limited = data.networks.rates.map(({bits_per_second: bits}) => bits).filter((bits) => bits !== null);
    this.say(".fastest", this.fastest(lines, limited, text));
    this.say(".missing", this.missing(variants, found));
    return timeOverRate({lines, limited, target: text});
  }

  say(place, text) {
    this.place.querySelector(place).textContent = text;
  }

  fastest(lines, limited, target) {
    if (lines.length === 0) return "";
    const timed = lines.map(({name, points}) => ({name, times: points.map(([, seconds]) => seconds)}));
    const last = timed.reduce((best, line) => (line.times.at(-1) < best.times.at(-1) ? line : best));
    const fastest = fastestOver(limited, timed);
    // Of equal ones the one that was the fastest up to there stays.
    const kept = timed.find(({name}) => name === fastest.at(-1).name);
    return "Fastest to " + target + " with a latency of " + this.latency.selectedOptions[0].textContent + ": " +
      fastestText(fastest, kept.times.at(-1) <= last.times.at(-1) ? kept.name : last.name);
  }

  missing(variants, found) {
    const names = (isOne) => variants.filter((variant, i) => isOne(variant, found[i])).map(({name}) => name).join(", ");
    const untimed = variants.map(({name, runs}) => [name, runs.filter((run) => !isTimed(run)).length, runs.length])
      .filter(([, count]) => count > 0)
      .map(([name, count, all]) => name + (count < all ? " (" + count + " of " + all + ")" : "")).join(", ");
    const some = variants.map(({name}, i) => [name, found[i]])
      .filter(([, {reached, seeds}]) => reached.length > 0 && reached.length < seeds)
      .map(([name, {reached, seeds}]) => name + " (" + reached.length + " of " + seeds + ")").join(", ");
    return [["Reached by some seeds alone: ", some],
      ["Never reach it: ", names((variant, {reached, seeds}) => seeds > 0 && reached.length === 0)],
      ["No run has ended: ", names(({runs}, {seeds}) => seeds === 0 && runs.some(isTimed))],
      ["Without scores or times that can be simulated: ", untimed]]
      .filter(([, list]) => list).map(([words, list]) => words + list + ".").join(" ");
  }
}

function addNetworks(section, table, choice, own) {
  if (table.variants.every(({runs}) => runs.every(({timed}) => timed.length === 0))) return;
  own.push(...new OverNetworks(section, table, choice).figures);
}
