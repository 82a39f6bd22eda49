// Charts as files: PNG from the canvas, SVG drawn from what the library has laid out, CSV of the numbers.

const kTitleHeight = 28;
const kLegendRow = 20;

function textWidth(text) {
  textWidth.context ??= document.createElement("canvas").getContext("2d");
  textWidth.context.font = "12px " + Chart.defaults.font.family;
  return textWidth.context.measureText(text).width;
}

// The lines of the chips, which stand outside of the canvas: from left to right, row by row, below the chart. A chart
// with a legend of its own, and one whose points are named, need none.
function legendOutside(chart) {
  const lines = chart.config.type === "line" && !chart.options.plugins.legend.display
    ? chart.data.datasets.filter(({band}) => !band) : [];
  let [x, row] = [8, 0];
  const items = lines.map(({label, borderColor, borderDash}) => {
    const width = 48 + textWidth(label);
    if (x > 8 && x + width > chart.width) [x, row] = [8, row + 1];
    const item = {x, y: kTitleHeight + chart.height + (row + 0.5) * kLegendRow, label, colour: borderColor, dash: borderDash};
    x += width;
    return item;
  });
  return {items, height: items.length ? (row + 1) * kLegendRow + 6 : 0};
}

function escapeXml(text) {
  const names = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"};
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "").replace(/[&<>"]/g, (c) => names[c]);
}

// Collects elements of an SVG, with coordinates to a hundredth of a pixel.
class Svg {
  constructor() {
    this.parts = [];
  }

  add(name, attributes, text) {
    const rounded = (value) => (typeof value === "number" ? Number(value.toFixed(2)) : escapeXml(String(value)));
    const written = Object.entries(attributes).filter(([, value]) => value !== null)
      .map(([key, value]) => " " + key + '="' + rounded(value) + '"').join("");
    this.parts.push("<" + name + written + (text === undefined ? "/>" : ">" + escapeXml(text) + "</" + name + ">"));
  }

  line(x1, y1, x2, y2, stroke, width = 1, dash = []) {
    this.add("line", {x1, y1, x2, y2, stroke, "stroke-width": width, "stroke-dasharray": dash.join(" ") || null});
  }

  text(x, y, text, fill, {anchor = "start", size = 12, weight = null, turn = null} = {}) {
    this.add("text", {x, y: turn ? y : y + size * 0.35, fill, "font-size": size, "font-weight": weight,
      "text-anchor": anchor, transform: turn}, text);
  }

  path(points, {stroke = "none", fill = "none", width = 0, dash = [], steps = false, closed = false}) {
    const at = ({x, y}) => Number(x.toFixed(2)) + " " + Number(y.toFixed(2));
    const d = points.map((point, i) => (i === 0 ? "M" + at(point)
      : (steps ? "V" + Number(point.y.toFixed(2)) : "") + "L" + at(point))).join("") + (closed ? "Z" : "");
    this.add("path", {d, stroke, fill, "stroke-width": width || null, "stroke-linejoin": "round",
      "stroke-dasharray": dash.join(" ") || null});
  }

  // A point of a line or of the picture, in the library's shapes.
  mark({x, y}, {pointStyle, borderColor, backgroundColor}, radius) {
    const look = {fill: backgroundColor, stroke: borderColor, "stroke-width": 2};
    const corners = {rectRot: [[0, -1], [1, 0], [0, 1], [-1, 0]], triangle: [[0, -1], [0.87, 0.5], [-0.87, 0.5]],
      rect: [[-0.7, -0.7], [0.7, -0.7], [0.7, 0.7], [-0.7, 0.7]]}[pointStyle];
    if (!corners) this.add("circle", {cx: x, cy: y, r: radius, ...look});
    else this.add("polygon", {points: corners.map(([a, b]) => (x + a * radius).toFixed(2) + "," + (y + b * radius).toFixed(2)).join(" "), ...look});
  }
}

function drawAxis(svg, chart, scale) {
  const {left, right, top, bottom} = chart.chartArea;
  const {grid, muted} = theme();
  const across = scale.axis === "x";
  scale.ticks.forEach(({label}, index) => {
    const at = scale.getPixelForTick(index);
    if (across) svg.line(at, top, at, bottom + 4, grid);
    else svg.line(left - 4, at, right, at, grid);
    const text = Array.isArray(label) ? label.join(" ") : String(label ?? "");
    if (across) svg.text(at, bottom + 14, text, muted, {anchor: "middle"});
    else svg.text(left - 8, at, text, muted, {anchor: "end"});
  });
  if (across) svg.line(left, bottom, right, bottom, muted);
  else svg.line(left, top, left, bottom, muted);
  const {display, text} = scale.options.title;
  const middle = {x: (left + right) / 2, y: (top + bottom) / 2};
  if (!display || !text) return;
  if (across) svg.text(middle.x, scale.bottom - 10, text, muted, {anchor: "middle"});
  else svg.text(0, 0, text, muted, {anchor: "middle", turn: "translate(" + (scale.left + 12) + " " + middle.y.toFixed(1) + ") rotate(-90)"});
}

function drawBars(svg, meta, dataset) {
  for (const bar of meta.data) {
    const {x, y, base, height} = bar.getProps(["x", "y", "base", "height"], true);
    if (![x, y, base, height].every(Number.isFinite)) continue;
    svg.add("rect", {x: Math.min(x, base), y: y - height / 2, width: Math.abs(x - base), height, fill: dataset.backgroundColor});
  }
}

function drawLine(svg, chart, meta, dataset) {
  const points = meta.data.map(({x, y}) => ({x, y}));
  if (points.length === 0) return;
  if (dataset.fill === "-1") {
    const other = chart.getDatasetMeta(meta.index - 1).data.map(({x, y}) => ({x, y}));
    svg.path([...points, ...other.reverse()], {fill: dataset.backgroundColor, closed: true});
  }
  if (dataset.showLine !== false && dataset.borderWidth > 0) {
    svg.path(points, {stroke: dataset.borderColor, width: dataset.borderWidth, dash: dataset.borderDash, steps: Boolean(dataset.stepped)});
  }
  if (dataset.pointRadius > 0) for (const point of points) svg.mark(point, dataset, dataset.pointRadius);
}

function drawNames(svg, chart) {
  for (const {x, low, high, colour} of chart.errorBars ?? []) {
    svg.line(x, low, x, high, colour, 1.5);
    for (const end of [low, high]) svg.line(x - 4, end, x + 4, end, colour, 1.5);
  }
  for (const {x, y, point, distance, left, right} of chart.names ?? []) {
    if (distance > 10) svg.line(point.x, point.y, Math.min(Math.max(point.x, left), right), y, theme().muted, 0.5);
    svg.text(x, y, point.name, point.colour, {anchor: "middle"});
  }
}

// The library's own legend, where the chart has one.
function drawLegend(svg, {legend}) {
  if (!legend.options.display) return;
  legend.legendItems.forEach((item, index) => {
    const {left, top, height} = legend.legendHitBoxes[index];
    const y = top + height / 2;
    if (item.pointStyle === "line") svg.line(left, y, left + 30, y, item.strokeStyle, 2, item.lineDash ?? []);
    else svg.add("rect", {x: left, y: y - 5, width: 10, height: 10, fill: item.fillStyle});
    svg.text(left + (item.pointStyle === "line" ? 38 : 18), y, item.text, theme().ink);
  });
}

function svgOf({chart}, title) {
  const svg = new Svg();
  const outside = legendOutside(chart);
  const [width, height] = [chart.width, kTitleHeight + chart.height + outside.height];
  const {ink, paper} = theme();
  svg.add("rect", {width, height, fill: paper});
  svg.text(8, kTitleHeight / 2, title, ink, {size: 14, weight: 600});
  svg.parts.push('<g transform="translate(0 ' + kTitleHeight + ')">');
  for (const scale of Object.values(chart.scales)) drawAxis(svg, chart, scale);
  const metas = chart.getSortedVisibleDatasetMetas();
  for (const meta of [...metas].reverse()) {
    const dataset = chart.data.datasets[meta.index];
    if (meta.type === "bar") drawBars(svg, meta, dataset);
    else drawLine(svg, chart, meta, dataset);
  }
  drawNames(svg, chart);
  drawLegend(svg, chart);
  svg.parts.push("</g>");
  for (const {x, y, label, colour, dash} of outside.items) {
    svg.line(x, y, x + 26, y, colour, 2, dash);
    svg.text(x + 32, y, label, ink);
  }
  return '<svg xmlns="http://www.w3.org/2000/svg" width="' + width + '" height="' + height + '" viewBox="0 0 ' + width +
    " " + height + '" font-family="' + escapeXml(Chart.defaults.font.family) + '">\n' + svg.parts.join("\n") + "\n</svg>\n";
}

// A canvas with the chart's and what stands around it on the page, at its own resolution.
function pictureOf({chart}, title) {
  const outside = legendOutside(chart);
  const ratio = chart.currentDevicePixelRatio;
  const canvas = document.createElement("canvas");
  canvas.width = chart.canvas.width;
  canvas.height = chart.canvas.height + Math.round((kTitleHeight + outside.height) * ratio);
  const context = canvas.getContext("2d");
  const {ink, paper} = theme();
  context.fillStyle = paper;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(chart.canvas, 0, Math.round(kTitleHeight * ratio));
  context.scale(ratio, ratio);
  context.textBaseline = "middle";
  context.fillStyle = ink;
  context.font = "600 14px " + Chart.defaults.font.family;
  context.fillText(title, 8, kTitleHeight / 2);
  context.font = "12px " + Chart.defaults.font.family;
  context.lineWidth = 2;
  for (const {x, y, label, colour, dash} of outside.items) {
    context.strokeStyle = colour;
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x + 26, y);
    context.stroke();
    context.fillText(label, x + 32, y);
  }
  return canvas;
}

function pngOf(figure, title) {
  const bytes = atob(pictureOf(figure, title).toDataURL("image/png").split(",")[1]);
  return new Blob([Uint8Array.from(bytes, (byte) => byte.charCodeAt(0))], {type: "image/png"});
}

// A field of RFC 4180; a text that a spreadsheet would take for a formula gets an apostrophe in front.
function csvField(value) {
  if (typeof value !== "string") return value === null ? "" : String(value);
  const text = (/^[=+\-@\t\r]/.test(value) ? "'" : "") + value;
  return /[,"\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
}

function csvOf({table}) {
  return [table.head, ...table.rows].map((row) => row.map(csvField).join(",") + "\r\n").join("");
}

function fileName(title, ending) {
  return (title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 100) || "chart") + "." + ending;
}

function save(name, blob) {
  const link = element("a", {href: URL.createObjectURL(blob), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

const kExports = {
  svg: (figure, title) => new Blob([svgOf(figure, title)], {type: "image/svg+xml"}),
  png: pngOf,
  csv: (figure) => new Blob([csvOf(figure)], {type: "text/csv"}),
};

function addExport(figure) {
  const place = figure.canvas.closest("figure");
  const caption = place.querySelector("figcaption").textContent;
  const tables = data.tables.length > 1 ? [data.tables[Number(place.closest("section").dataset.table)].title] : [];
  const title = [...tables, caption].join(" – ");
  const buttons = Object.entries(kExports).map(([ending, make]) => {
    const button = element("button", {type: "button", textContent: ending.toUpperCase()});
    button.setAttribute("aria-label", "Save " + caption + " as " + ending.toUpperCase());
    button.addEventListener("click", () => save(fileName(title, ending), make(figure, title)));
    return button;
  });
  place.append(element("p", {className: "export screen"}, ["Save as ", ...buttons]));
}
