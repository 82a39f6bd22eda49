// Puts the data into the page: chips, curves, bars, diagnostics and the details of a run.

let data = JSON.parse(document.getElementById("data").textContent);

function element(name, properties = {}, children = []) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function decimals(count) {
  return (value) => value.toFixed(count);
}

function significant(value) {
  return Number(value.toPrecision(4)).toString();
}

function bytesText(bytes) {
  const power = bytes > 1 ? Math.min(Math.floor(Math.log10(bytes) / 3), 4) : 0;
  return Number((bytes / 1000 ** power).toPrecision(4)) + " " + ["B", "kB", "MB", "GB", "TB"][power];
}

function swatch(index) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  const line = document.createElementNS(space, "line");
  const attributes = {x1: 0, x2: 26, y1: 4, y2: 4, "stroke-width": 2.5, stroke: colourOf(index),
    "stroke-dasharray": dashOf(index).join(" ")};
  for (const [name, value] of Object.entries(attributes)) line.setAttribute(name, value);
  svg.setAttribute("aria-hidden", "true");
  svg.append(line);
  return svg;
}

// The buttons that choose which variants a table's figures show.
class Choice {
  constructor(place, variants, onChange) {
    this.shown = variants.map(() => true);
    this.chips = variants.map((variant, index) => {
      const chip = element("button", {type: "button", className: "chip"}, [swatch(index), variant.name]);
      chip.addEventListener("click", () => this.set((shown, i) => (i === index ? !shown : shown)));
      return chip;
    });
    const every = (text, value) => {
      const button = element("button", {type: "button", className: "all", textContent: text});
      button.addEventListener("click", () => this.set(() => value));
      return button;
    };
    place.append(...this.chips, every("show all", true), every("hide all", false));
    this.onChange = onChange;
    this.mark();
  }

  set(change) {
    this.shown = this.shown.map(change);
    this.mark();
    this.onChange();
  }

  mark() {
    this.chips.forEach((chip, index) => chip.setAttribute("aria-pressed", this.shown[index]));
  }

  repaint() {
    this.chips.forEach((chip, index) => chip.firstChild.replaceWith(swatch(index)));
  }

  of(variants) {
    return variants.map((variant, index) => ({...variant, index})).filter(({index}) => this.shown[index]);
  }
}

function curveFigure(canvas, table, choice) {
  const key = canvas.dataset.figure;
  const {label, unit} = table.metric;
  const isLoss = key === "train_loss";
  return new Figure(canvas, () => lineConfig({
    series: choice.of(table.variants).map(({name, index, [key]: points}) => ({name, index, points})),
    label: isLoss ? "training loss" : label + (unit ? ", " + unit : ""),
    format: isLoss ? decimals(4) : (value) => value.toFixed(2) + (unit ? " " + unit : ""),
    legend: false,
  }));
}

function stepFigure(canvas, table, choice) {
  const side = canvas.dataset.steps;
  return new Figure(canvas, () => lineConfig({
    series: choice.of(table.variants).map(({name, index, steps}) => ({name, index, points: steps[side]})),
    label: "loss", format: decimals(4), legend: false, along: "step",
  }));
}

// Evaluations within epochs, where there are any.
function addSteps(section, table, choice, own) {
  if (table.variants.every(({steps}) => steps.off.length === 0)) return;
  const place = section.querySelector(".steps");
  place.hidden = false;
  for (const canvas of place.querySelectorAll("canvas")) own.push(stepFigure(canvas, table, choice));
}

function barFigure(canvas, table, choice) {
  const direction = canvas.dataset.figure;
  const boundaries = [...new Set(table.variants.flatMap(({traffic}) => traffic.map((row) => row.boundary)))];
  canvas.parentElement.style.setProperty("--bars", table.variants.length);
  return new Figure(canvas, () => {
    const variants = choice.of(table.variants);
    const bytes = ({traffic}, name) => traffic.find(({boundary}) => boundary === name)?.[direction] ?? null;
    return barConfig({
      labels: variants.map(({name}) => name),
      stacks: boundaries.map((name) => ({name, values: variants.map((variant) => bytes(variant, name))})),
      label: "wire bytes per step",
      format: bytesText,
    });
  });
}

function quantityLabel(name) {
  const labels = {
    zeros: "share of zeros", relative_error: "relative error of what is received",
    cosine: "cosine of consecutive messages", residual_norm: "norm of the residual",
    "quantile 1": "quantile 1 (maximum)",
  };
  return labels[name] ?? name.replaceAll("_", " ");
}

function fillSelect(select, options) {
  const before = select.value;
  select.replaceChildren(...options.map(([value, text]) => element("option", {value, textContent: text})));
  if (options.some(([value]) => value === before)) select.value = before;
}

function addDiagnostics(section, table) {
  const measured = table.variants.filter(({diagnostics}) => Object.keys(diagnostics).length > 0);
  if (measured.length === 0) return;
  const place = section.querySelector(".diagnostics");
  const [variantSelect, quantitySelect] = place.querySelectorAll("select");
  place.hidden = false;
  fillSelect(variantSelect, measured.map(({name}, index) => [String(index), name]));
  const chosen = () => measured[Number(variantSelect.value)].diagnostics;
  const fillQuantities = () =>
    fillSelect(quantitySelect, Object.keys(chosen()).map((name) => [name, quantityLabel(name)]));
  fillQuantities();
  const made = [...place.querySelectorAll("canvas")].map((canvas) => new Figure(canvas, () => {
    const lines = chosen()[quantitySelect.value]
      .filter(({direction}) => direction === canvas.dataset.diagnostic);
    return lineConfig({
      series: lines.map(({boundary, points}, index) => ({name: boundary, points, index: index + 1})),
      label: quantityLabel(quantitySelect.value), format: significant, legend: true,
    });
  }));
  place.addEventListener("change", (event) => {
    if (event.target === variantSelect) fillQuantities();
    for (const figure of made) figure.draw();
  });
}

function runFacts(run) {
  const written = run.updated > 0 ? new Date(run.updated * 1000).toISOString().slice(0, 19).replace("T", " ") + " UTC" : "";
  const epochs = run.epochs > 0 ? run.epochs_done + " of " + run.epochs : "";
  const facts = [["Status", run.status], ["Reason", run.error], ["Seed", run.seed], ["Epochs", epochs],
    ["Written", written], ["Folder", run.folder], ["Code", run.code_version], ["Machine", run.machine],
    ["Configuration hash", run.config_hash]];
  return facts.filter(([, value]) => value !== "").map(([name, value]) =>
    element("div", {}, [element("dt", {textContent: name}), element("dd", {textContent: value})]));
}

const details = {
  dialog: document.getElementById("details"),
  seed: document.getElementById("details-seed"),

  show(variant) {
    this.runs = variant.runs;
    document.getElementById("details-title").textContent = variant.name;
    fillSelect(this.seed, this.runs.map(({seed}, index) => [String(index), seed]));
    this.seed.value = "0";
    this.fill();
    this.dialog.showModal();
  },

  fill() {
    const run = this.runs[Number(this.seed.value)];
    document.getElementById("details-facts").replaceChildren(...runFacts(run));
    document.getElementById("details-config").textContent = run.config || "not written yet";
  },
};

// What has been made of each table.
const views = [];

function addTable(section) {
  const table = data.tables[Number(section.dataset.table)];
  const own = [];
  const choice = new Choice(section.querySelector(".chips"), table.variants,
    () => own.forEach((figure) => figure.draw()));
  addQuality(section, table, choice, own);
  for (const canvas of section.querySelectorAll(".three canvas")) own.push(curveFigure(canvas, table, choice));
  addSteps(section, table, choice, own);
  addNetworks(section, table, choice, own);
  for (const canvas of section.querySelectorAll(".bars canvas")) own.push(barFigure(canvas, table, choice));
  addDiagnostics(section, table);
  const sortings = [...section.querySelectorAll("table")].map((place) => new Sorting(place));
  const [results] = sortings;
  new Comparison(section, table, results);
  views.push({section, table, choice, sortings});
  for (const row of results.rows) {
    const index = Number(row.querySelector("button").dataset.variant);
    row.addEventListener("click", () => details.show(table.variants[index]));
  }
}

function repaint() {
  for (const {choice} of views) choice.repaint();
  drawAll();
}

// What printing has to open, and to fold again.
let folded = [];

// Paper is light, whatever the screen is, and shows the tables that are folded away on it.
function setPrinting(value) {
  if (value === printing) return;
  printing = value;
  if (value) folded = [...document.querySelectorAll("details.more:not([open])")];
  for (const more of folded) more.open = value;
  repaint();
}

// Puts the data into the sections that are there, and nothing of what was made before.
function build() {
  for (const {chart} of figures.splice(0)) chart.destroy();
  views.length = 0;
  for (const section of document.querySelectorAll("section.table")) addTable(section);
  for (const figure of figures) addExport(figure);
  drawAll();
}

details.seed.addEventListener("change", () => details.fill());
document.getElementById("details-close").addEventListener("click", () => details.dialog.close());
Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
build();
darkScreen.addEventListener("change", repaint);
window.addEventListener("beforeprint", () => setPrinting(true));
window.addEventListener("afterprint", () => setPrinting(false));
