// Figures on canvases. A figure keeps how it is made and is drawn anew when the colours or the choice change.

// Pixels on paper, scaled to the column: two charts a row, and the picture of points over the whole width.
function printSize({type, data}) {
  const heights = {line: 230, bar: Math.min(76 + 20 * (data.labels?.length ?? 0), 700), scatter: 340};
  return {width: type === "scatter" ? 1200 : 600, height: heights[type]};
}
const figures = [];

// An estimate is [mean, standard error or null, seeds]; a point of a curve has its epoch or step before these.
function estimateText([mean, error, seeds], format) {
  const spread = error === null ? "" : " ± " + format(error);
  return format(mean) + spread + (seeds === 1 ? " (1 seed)" : " (" + seeds + " seeds)");
}

function axisTitle(text) {
  return {display: true, text, color: theme().muted, font: {size: 12}};
}

function scaleOf(title, ticks) {
  return {
    title: axisTitle(title),
    grid: {color: theme().grid, borderColor: theme().muted, tickLength: 4},
    ticks: {color: theme().muted, font: {size: 12}, maxRotation: 0, ...ticks},
  };
}

function tooltipOf(callbacks) {
  const {ink, muted, surface} = theme();
  return {
    callbacks,
    backgroundColor: surface, titleColor: ink, bodyColor: ink, borderColor: muted, borderWidth: 1,
    padding: 10, boxPadding: 4, cornerRadius: 6, caretSize: 0, usePointStyle: true,
    titleFont: {size: 12}, bodyFont: {size: 12},
  };
}

// The library's own legend leaves the dashes out where it draws a point's style.
function legendLabels(chart) {
  const {datasets} = chart.data;
  return Chart.defaults.plugins.legend.labels.generateLabels(chart)
    .filter(({datasetIndex}) => !datasets[datasetIndex].band)
    .map((item) => ({...item, lineDash: datasets[item.datasetIndex].borderDash, lineWidth: 2}));
}

function legendOf(display, pointStyle) {
  return {
    display, position: "bottom", onClick: null,
    labels: {color: theme().ink, usePointStyle: true, pointStyle, pointStyleWidth: pointStyle === "line" ? 30 : 12,
      font: {size: 12}, generateLabels: legendLabels},
  };
}

// The line of a series and, where it has a standard error, the two edges of its band.
function lineDatasets({name, points, index}) {
  const colour = colourOf(index);
  const line = {
    label: name, points, order: 0,
    data: points.map(([place, mean]) => ({x: place, y: mean})),
    borderColor: colour, backgroundColor: colour, borderWidth: 2, borderDash: dashOf(index),
    pointRadius: points.length === 1 ? 3 : 0, pointHoverRadius: 4, pointStyle: "circle",
  };
  const edge = (sign, fill) => ({
    label: name, band: true, order: 1, fill, backgroundColor: faint(colour),
    data: points.map(([place, mean, error]) => ({x: place, y: mean + sign * (error ?? 0)})),
    borderWidth: 0, pointRadius: 0, pointHoverRadius: 0,
  });
  return points.some((point) => point[2] !== null) ? [line, edge(-1, false), edge(1, "-1")] : [line];
}

function rangeOf(series) {
  const places = series.flatMap(({points}) => points.map((point) => point[0]));
  if (places.length === 0) return {};
  const [min, max] = [Math.min(...places), Math.max(...places)];
  return min === max ? {min: min - 1, max: max + 1} : {min, max};
}

// What a chart is made of: the library's configuration, and the numbers as a table.
function lineConfig({series, label, format, legend, along = "epoch", placeText, xScale, yScale}) {
  const titleOf = (place) => placeText?.(place) ?? along[0].toUpperCase() + along.slice(1) + " " + place;
  return {
    table: {
      head: ["series", along, label, "standard error", "seeds"],
      rows: series.flatMap(({name, points}) => points.map((point) => [name, ...point])),
    },
    type: "line",
    data: {datasets: series.flatMap(lineDatasets)},
    options: {
      parsing: false,
      interaction: {mode: "nearest", axis: "x", intersect: false},
      scales: {
        x: xScale ?? {type: "linear", ...rangeOf(series), ...scaleOf(along, {precision: 0, maxTicksLimit: 8})},
        y: yScale ?? scaleOf(label, {maxTicksLimit: 7, callback: significant}),
      },
      plugins: {
        legend: legendOf(legend, "line"),
        tooltip: {
          ...tooltipOf({
            title: (items) => (items.length ? titleOf(items[0].parsed.x) : ""),
            label: (item) => item.dataset.label + ": " + estimateText(item.dataset.points[item.dataIndex].slice(1), format),
          }),
          filter: (item) => !item.dataset.band,
          itemSort: (a, b) => b.parsed.y - a.parsed.y,
        },
      },
    },
  };
}

function barConfig({labels, stacks, label, format}) {
  return {
    table: {
      head: ["variant", "boundary", label],
      rows: labels.flatMap((name, index) => stacks.map((stack) => [name, stack.name, stack.values[index]])),
    },
    type: "bar",
    data: {
      labels,
      datasets: stacks.map(({name, values}, index) => ({
        label: name, data: values, backgroundColor: colourOf(index + 1), pointStyle: "rect",
        borderColor: theme().surface, borderWidth: {right: 1}, maxBarThickness: 18,
      })),
    },
    options: {
      indexAxis: "y",
      interaction: {mode: "index", axis: "y", intersect: false},
      scales: {
        x: {stacked: true, beginAtZero: true, ...scaleOf(label, {maxTicksLimit: 6, callback: format})},
        y: {stacked: true, ...scaleOf("", {autoSkip: false}), title: {display: false}},
      },
      plugins: {
        legend: legendOf(true, "rect"),
        tooltip: tooltipOf({label: (item) => item.dataset.label + ": " + format(item.parsed.x)}),
      },
    },
  };
}

// Notes on the canvas that the library has drawn it, and how many series.
const drawnNote = {
  id: "drawnNote",
  afterRender(chart) {
    chart.canvas.dataset.drawn = chart.getSortedVisibleDatasetMetas().filter((meta) => meta.data.length > 0).length;
  },
};

class Figure {
  constructor(canvas, makeConfig) {
    this.canvas = canvas;
    this.makeConfig = makeConfig;
    this.spoken = document.createElement("p");
    this.spoken.className = "spoken";
    this.spoken.setAttribute("aria-live", "polite");
    canvas.after(this.spoken);
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    canvas.addEventListener("keydown", (event) => this.move(event));
    figures.push(this);
  }

  draw() {
    this.chart?.destroy();
    this.position = -1;
    const {table, ...config} = this.makeConfig();
    this.table = table;
    if (printing) Object.assign(this.canvas, printSize(config));
    Object.assign(config.options, {
      animation: false, responsive: !printing, maintainAspectRatio: false,
      devicePixelRatio: Math.max(2, window.devicePixelRatio),
    });
    config.plugins = [...(config.plugins ?? []), drawnNote];
    this.chart = new Chart(this.canvas, config);
    const names = this.chart.data.datasets.filter((dataset) => !dataset.band).map((dataset) => dataset.label);
    const caption = this.canvas.closest("figure").querySelector("figcaption").textContent;
    this.canvas.setAttribute("aria-label", caption + ": " + (names.join(", ") || "nothing chosen"));
  }

  // The elements of each place along the main axis, in order: epochs or steps of lines, names of bars.
  places() {
    const byPlace = new Map();
    this.chart.data.datasets.forEach((dataset, datasetIndex) => {
      if (dataset.band) return;
      dataset.data.forEach((value, index) => {
        const place = value?.x ?? index;
        byPlace.set(place, [...(byPlace.get(place) ?? []), {datasetIndex, index}]);
      });
    });
    return [...byPlace.entries()].sort((a, b) => a[0] - b[0]).map((entry) => entry[1]);
  }

  // Arrow keys show the values of the next place.
  move(event) {
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    const places = step ? this.places() : [];
    if (places.length === 0) return;
    event.preventDefault();
    this.position = Math.min(Math.max(this.position + step, 0), places.length - 1);
    const elements = places[this.position];
    const {x, y} = this.chart.getDatasetMeta(elements[0].datasetIndex).data[elements[0].index];
    this.chart.setActiveElements(elements);
    this.chart.tooltip.setActiveElements(elements, {x, y});
    this.chart.update("none");
    const {title, body} = this.chart.tooltip;
    this.spoken.textContent = [...title, ...body.flatMap((item) => item.lines)].join(", ");
  }
}

function drawAll() {
  for (const figure of figures) figure.draw();
}
