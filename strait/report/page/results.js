// Tables that the reader sorts by any column, and the table of results as differences to a baseline.

// First rising, then falling, then in the order of the file.
const kNextOrder = {none: "ascending", ascending: "descending", descending: "none"};

class Sorting {
  constructor(table) {
    this.body = table.tBodies[0];
    this.rows = [...this.body.rows];
    this.heads = [...table.querySelectorAll("th[data-column]")];
    this.column = null;
    this.order = "none";
    for (const head of this.heads) {
      const button = element("button", {type: "button", className: "sort"}, [...head.childNodes]);
      button.addEventListener("click", () => {
        const isOther = this.column !== head.dataset.column;
        this.sort(head.dataset.column, isOther ? "ascending" : kNextOrder[this.order]);
      });
      head.append(button);
    }
    this.mark();
  }

  sort(column, order) {
    [this.column, this.order] = [column, order];
    this.apply();
    this.mark();
  }

  // Numbers by their size, texts as people sort them; what is missing stays at the end.
  apply() {
    const isNumber = this.body.querySelector("td[data-value]:nth-child(" + (Number(this.column) + 1) + ")") !== null;
    const keyOf = (row) => {
      const {dataset, textContent} = row.cells[Number(this.column)];
      return isNumber ? ("value" in dataset ? Number(dataset.value) : null) : textContent;
    };
    const sign = this.order === "descending" ? -1 : 1;
    const compare = (a, b) => {
      if (a.key === null || b.key === null) return (a.key === null) - (b.key === null);
      return sign * (isNumber ? a.key - b.key : a.key.localeCompare(b.key, "en", {numeric: true}));
    };
    const keyed = this.rows.map((row) => ({row, key: this.order === "none" ? null : keyOf(row)}));
    this.body.append(...keyed.sort(compare).map(({row}) => row));
  }

  mark() {
    for (const head of this.heads) {
      head.setAttribute("aria-sort", head.dataset.column === this.column ? this.order : "none");
    }
  }
}

function meanAndError(values) {
  const count = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / count;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return {mean, error: count > 1 ? Math.sqrt(squares / (count - 1) / count) : null};
}

// Of a measure such as "score off": the mean over the seeds that both have, each seed's difference taken by itself. Null
// where they share none, where a score of one is not finite, or where runs under way have not come to the same epoch.
function differenceTo(base, variant, measure) {
  const [what, mode] = measure.split(" ");
  const [own, other] = [variant.seeds[mode], base.seeds[mode]];
  if (own.epoch !== other.epoch && !(variant.is_done && base.is_done)) return null;
  const pairs = own.rows.map((row) => [row, other.rows.find(({seed}) => seed === row.seed)]).filter(([, to]) => to);
  if (pairs.length === 0 || pairs.flat().some((row) => row[what] === null)) return null;
  return {...meanAndError(pairs.map(([row, to]) => row[what] - to[what])), seeds: pairs.map(([{seed}]) => seed)};
}

function signedText({mean, error}) {
  const large = Math.abs(mean) >= 1e12;
  const text = (mean < 0 ? "" : "+") + (large ? mean.toExponential(2) : mean.toFixed(2));
  return text + (error === null ? " (n = 1)" : " ± " + (large ? error.toExponential(2) : error.toFixed(2)));
}

// The variant that sends the most bytes, so the one without compression where there is one.
function usualBaseline({variants}) {
  return variants.reduce((most, {wire}, index) => ((wire ?? -1) > (variants[most].wire ?? -1) ? index : most), 0);
}

// Shows the means over seeds as they are, or as differences to the row that the reader picks.
class Comparison {
  constructor(section, table, sorting) {
    [this.table, this.sorting] = [table, sorting];
    this.place = section.querySelector(".compare");
    this.note = section.querySelector(".compared");
    [this.toggle, this.baseline] = this.place.querySelectorAll("input, select");
    fillSelect(this.baseline, table.variants.map(({name}, index) => [String(index), name]));
    this.baseline.value = String(usualBaseline(table));
    this.baseline.dataset.usual = "";
    this.cells = sorting.rows.flatMap((row, index) => sorting.heads.filter(({dataset}) => dataset.measure).map((head) => {
      const cell = row.cells[Number(head.dataset.column)];
      return {cell, index, measure: head.dataset.measure, text: cell.textContent, value: cell.dataset.value};
    }));
    this.place.hidden = table.variants.length < 2;
    this.place.addEventListener("change", (event) => {
      if (event.target === this.baseline) {
        this.toggle.checked = true;
        delete this.baseline.dataset.usual;
      }
      this.show();
    });
  }

  show() {
    const chosen = this.toggle.checked ? Number(this.baseline.value) : -1;
    const base = this.table.variants[chosen];
    for (const {cell, index, measure, text, value} of this.cells) {
      const isAbsolute = !base || index === chosen;
      const found = isAbsolute ? null : differenceTo(base, this.table.variants[index], measure);
      cell.textContent = isAbsolute ? text : found ? signedText(found) : "–";
      cell.title = found ? "paired over seeds " + found.seeds.join(", ") : "";
      const shown = isAbsolute ? (base ? "0" : value) : found?.mean;
      if (shown === undefined) delete cell.dataset.value;
      else cell.dataset.value = shown;
    }
    this.sorting.rows.forEach((row, index) => row.classList.toggle("baseline", index === chosen));
    this.note.textContent = base
      ? "Last epoch: mean difference to " + base.name + ", whose own figures stand in its row, over the seeds that both have."
      : "";
    if (this.sorting.order !== "none") this.sorting.apply();
  }
}
