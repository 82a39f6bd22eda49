// The picture of quality over bytes: a point for each variant with its standard error, its name beside it, and the
// line of those that no other variant beats.

const kMarks = ["circle", "rectRot", "triangle", "rect"];

// Ticks at 1, 2 and 5 times powers of ten, at powers of ten alone over a long range, or at even steps in a short one.
function logTicks(min, max) {
  const digits = max / min > 2000 ? [1] : [1, 2, 5];
  const values = [];
  for (let power = Math.floor(Math.log10(min)); 10 ** power <= max; ++power) {
    values.push(...digits.map((digit) => Number(digit + "e" + power)).filter((value) => value >= min && value <= max));
  }
  if (values.length > 2) return values;
  const rough = (max - min) / 6;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = size * [1, 2, 5, 10].find((digit) => digit * size >= rough);
  const first = Math.ceil(min / step);
  return Array.from({length: Math.floor(max / step) - first + 1}, (_, i) => (first + i) * step);
}

function logScale(title, [min, max], format) {
  return {
    ...scaleOf(title, {callback: format}), type: "logarithmic", bounds: "data", min, max,
    afterBuildTicks: (axis) => { axis.ticks = logTicks(min, max).map((value) => ({value})); },
  };
}

// The range of positive numbers with a part of it free at both ends, by their logarithms.
function logRange(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = Math.max((high / low) ** 0.06, 1.05);
  return [low / room, high * room];
}

function linearRange(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = Math.max(0.07 * (high - low), 0.01 * Math.abs(high), 1e-9);
  return [low - room, high + room];
}

// What a variant gives for its bytes; nothing where it has no score or nothing crossed.
function pointsOf(variants, side, axis) {
  return variants.filter(({last, [axis]: across}) => last[side][0] !== null && across > 0)
    .map((variant) => ({...variant, x: variant[axis], y: variant.last[side][0], error: variant.last[side][1] ?? 0}));
}

// The points that no other beats: none is as good in bytes and score and better in one of them. Most bytes first.
function paretoLine(points, axis, higherIsBetter) {
  const bytes = ({x}) => (axis === "wire" ? x : -x);
  const asGood = (a, b) => bytes(a) <= bytes(b) && (higherIsBetter ? a.y >= b.y : a.y <= b.y);
  return points.filter((point) => !points.some((other) => asGood(other, point) && !asGood(point, other)))
    .sort((a, b) => bytes(b) - bytes(a));
}

const errorBars = {
  id: "errorBars",
  afterDatasetsDraw(chart) {
    const {ctx, scales: {y}} = chart;
    chart.errorBars = [];
    chart.data.datasets.forEach(({point, borderColor}, index) => {
      if (!point || point.error === 0) return;
      const at = chart.getDatasetMeta(index).data[0].x;
      const [low, high] = [point.y - point.error, point.y + point.error].map((value) =>
        Math.min(Math.max(y.getPixelForValue(value), y.top), y.bottom));
      chart.errorBars.push({x: at, low, high, colour: borderColor});
      ctx.save();
      ctx.strokeStyle = borderColor;
      ctx.lineWidth = 1.5;
      ctx.beginPath();
      for (const end of [low, high]) {
        ctx.moveTo(at - 4, end);
        ctx.lineTo(at + 4, end);
      }
      ctx.moveTo(at, low);
      ctx.lineTo(at, high);
      ctx.stroke();
      ctx.restore();
    });
  },
};

function overlap(a, b) {
  const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
  const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
  return wide > 0 && high > 0 ? wide * high : 0;
}

function boxAround(x, y, halfWidth, halfHeight) {
  return {left: x - halfWidth, right: x + halfWidth, top: y - halfHeight, bottom: y + halfHeight};
}

const kNameHeight = 14;

// Where a name of that width can stand: beside its point, above, below and askew, near and farther off.
function placesFor({x, y}, width) {
  const directions = [[1, 0], [-1, 0], [0, -1], [0, 1], [1, -1], [-1, -1], [1, 1], [-1, 1]];
  return [8, 18, 32, 50].flatMap((distance) => directions.map(([across, down]) => {
    const centre = {x: x + across * (distance + width / 2), y: y + down * (distance + kNameHeight / 2)};
    return {...centre, ...boxAround(centre.x, centre.y, width / 2 + 1, kNameHeight / 2), distance};
  }));
}

// Names of points, those on the line first. Each takes the place where it covers least; where it would cover a name or
// a point everywhere, it is left out, and the pointer shows it.
function placeNames(points, thin, area, widthOf) {
  const marks = points.map(({x, y}) => boxAround(x, y, 6, 6));
  const taken = [];
  for (const point of [...points].sort((a, b) => b.isOnLine - a.isOnLine)) {
    const free = placesFor(point, widthOf(point.name)).filter((place) =>
      place.left >= area.left && place.right <= area.right && place.top >= area.top && place.bottom <= area.bottom &&
      !taken.some((other) => overlap(place, other)) && !marks.some((mark) => overlap(place, mark)));
    const cost = (place) => place.distance + thin.reduce((sum, other) => sum + overlap(place, other), 0) / 4;
    const best = free.reduce((least, place) => (!least || cost(place) < cost(least) ? place : least), null);
    if (best) taken.push({...best, point});
  }
  return taken;
}

// Boxes around the error bars and the steps of the line.
function thinBoxes(chart) {
  const bars = chart.errorBars.map(({x, low, high}) => boxAround(x, (low + high) / 2, 4, Math.abs(high - low) / 2));
  const line = chart.getDatasetMeta(chart.data.datasets.length - 1).data;
  const steps = line.slice(1).flatMap(({x, y}, i) => [
    boxAround(line[i].x, (line[i].y + y) / 2, 2, Math.abs(line[i].y - y) / 2),
    boxAround((line[i].x + x) / 2, y, Math.abs(line[i].x - x) / 2, 2)]);
  return [...bars, ...steps];
}

const pointNames = {
  id: "pointNames",
  afterDatasetsDraw(chart) {
    const {ctx, chartArea} = chart;
    const points = chart.data.datasets.flatMap(({point, label, isOnLine, borderColor}, index) => {
      if (!point) return [];
      const {x, y} = chart.getDatasetMeta(index).data[0];
      return [{x, y, name: label, isOnLine, colour: borderColor}];
    });
    ctx.save();
    ctx.font = "12px " + Chart.defaults.font.family;
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    chart.names = placeNames(points, thinBoxes(chart), chartArea, (name) => ctx.measureText(name).width);
    for (const {x, y, point, distance, left, right} of chart.names) {
      if (distance > 10) {
        ctx.strokeStyle = faint(theme().muted, "80");
        ctx.lineWidth = 1;
        ctx.beginPath();
        ctx.moveTo(point.x, point.y);
        ctx.lineTo(Math.min(Math.max(point.x, left), right), y);
        ctx.stroke();
      }
      ctx.strokeStyle = theme().paper;
      ctx.lineWidth = 3;
      ctx.lineJoin = "round";
      ctx.strokeText(point.name, x, y);
      ctx.fillStyle = point.colour;
      ctx.fillText(point.name, x, y);
    }
    ctx.restore();
    chart.canvas.dataset.named = chart.names.length;
  },
};

function fewerText(ratio) {
  return Number(ratio.toPrecision(3)) + "×";
}

// What the pointer shows of a point, line by line.
function pointText({last, wire, ratio}, side, metric, isOnLine) {
  const format = (value) => value.toFixed(2) + (metric.unit ? " " + metric.unit : "");
  const lines = [metric.label + ": " + estimateText(last[side], format), bytesText(wire) + " per step",
    fewerText(ratio) + " fewer bytes than uncompressed"];
  return isOnLine ? [...lines, "no other variant beats it"] : lines;
}

function qualityConfig({points, line, side, axis, metric}) {
  const edges = points.flatMap(({y, error}) => [y - error, y + error]);
  const isWide = metric.rises_with_loss && Math.min(...edges) > 0 && Math.max(...edges) > 10 * Math.min(...edges);
  const title = metric.label + (metric.unit ? ", " + metric.unit : "");
  const [low, high] = points.length ? linearRange(edges) : [0, 1];
  const across = points.length ? logRange(points.map(({x}) => x)) : [1, 10];
  const datasets = points.map((point) => ({
    label: point.name, point, data: [{x: point.x, y: point.y}], isOnLine: line.includes(point), showLine: false,
    borderColor: colourOf(point.index), backgroundColor: line.includes(point) ? colourOf(point.index) : theme().surface,
    borderWidth: 2, pointRadius: 5, pointHoverRadius: 7,
    pointStyle: kMarks[Math.floor(point.index / 8) % kMarks.length],
  }));
  // The steps say the best that at most so many bytes give.
  const steps = {
    label: "Pareto line", band: true, order: 1, showLine: true, stepped: "after",
    data: line.map(({x, y}) => ({x, y})), borderColor: theme().muted, borderWidth: 1.5, borderDash: [5, 4],
    pointRadius: 0, pointHoverRadius: 0,
  };
  return {
    table: {
      head: ["variant", title, "standard error", "seeds", "wire bytes per step", "times fewer bytes", "on the Pareto line"],
      rows: points.map((point) => [point.name, ...point.last[side], point.wire, point.ratio, line.includes(point) ? 1 : 0]),
    },
    type: "scatter",
    plugins: [errorBars, pointNames],
    data: {datasets: [...datasets, steps]},
    options: {
      parsing: false,
      interaction: {mode: "nearest", axis: "xy", intersect: false},
      scales: {
        x: axis === "wire" ? logScale("wire bytes per step", across, bytesText)
          : logScale("times fewer bytes than uncompressed", across, fewerText),
        y: isWide ? logScale(title, logRange(edges), significant)
          : {...scaleOf(title, {maxTicksLimit: 9, callback: significant, includeBounds: false}), min: low, max: high},
      },
      plugins: {
        legend: {display: false},
        tooltip: {
          ...tooltipOf({
            title: (items) => (items.length ? items[0].dataset.label : ""),
            label: ({dataset}) => pointText(dataset.point, side, metric, dataset.isOnLine),
          }),
          filter: (item) => !item.dataset.band,
        },
      },
    },
  };
}

// The picture where there is something to compare: two variants with a score and bytes.
function addQuality(section, table, choice, own) {
  const comparable = (side) => pointsOf(table.variants, side, "wire").length > 1;
  if (!comparable("on") && !comparable("off")) return;
  const place = section.querySelector(".quality");
  const [sideSelect, axisSelect] = place.querySelectorAll("select");
  place.hidden = false;
  const figure = new Figure(place.querySelector("canvas"), () => {
    const [side, axis] = [sideSelect.value, axisSelect.value];
    const variants = choice.of(table.variants);
    const points = pointsOf(variants, side, axis);
    const line = paretoLine(points, axis, table.metric.higher_is_better);
    const missing = variants.filter(({name}) => !points.some((point) => point.name === name)).map(({name}) => name);
    place.querySelector(".beaten").textContent = "On the Pareto line, which no other variant beats: " +
      (line.map(({name}) => name).join(", ") || "none") + "." +
      (missing.length ? " Without a score or bytes: " + missing.join(", ") + "." : "");
    return qualityConfig({points, line, side, axis, metric: table.metric});
  });
  own.push(figure);
  place.addEventListener("change", () => figure.draw());
}
