// A page that is served looks every two seconds whether its runs have gone on, and then takes the new page's content, with
// what the reader has chosen. A page that is a file never does.

const live = {
  version: document.body.dataset.version,
  place: document.getElementById("live"),

  say(text) {
    if (this.place.textContent !== text) this.place.textContent = text;
  },

  async look() {
    try {
      const state = await (await fetch("/state.json", {cache: "no-store"})).json();
      if (state.version !== this.version) await this.take();
      this.say(state.error ? "The runs cannot be read now; this is their last state. " + state.error : "");
    } catch {
      this.say("strait report no longer answers; this is the last state that it gave.");
    }
  },

  // The new page's scripts are not run: those that are here put its data in.
  async take() {
    const text = await (await fetch("/", {cache: "no-store"})).text();
    const page = new DOMParser().parseFromString(text, "text/html");
    const scriptOf = (root) => [...root.querySelectorAll("script:not([id])")].at(-1)?.textContent;
    if (!isSameProgram(scriptOf(page))) {
      location.reload();
      return;
    }
    const kept = chosen();
    for (const selector of ["h1", "header .facts", "#contents", "main"]) {
      document.querySelector(selector).replaceWith(document.importNode(page.querySelector(selector), true));
    }
    document.title = page.title;
    data = JSON.parse(page.getElementById("data").textContent);
    build();
    choose(kept);
    this.version = page.body.dataset.version;
  },
};

const ownProgram = document.currentScript.textContent;

function isSameProgram(script) {
  return script === ownProgram;
}

// What the reader has put into an input that is not ticked; null where it is the page's own.
function enteredIn({type, value, dataset}) {
  return type === "range" ? value : dataset.own ?? null;
}

// The text of the option that the reader has picked; null where it is the page's own.
function pickedIn({selectedOptions, dataset}) {
  return "usual" in dataset ? null : selectedOptions[0]?.textContent;
}

const kControls = "button, select, input, canvas, a, summary, [tabindex]";

// What the reader has chosen, table by table: by names, since variants may have come.
function chosen() {
  const controls = [...document.querySelectorAll(kControls)];
  return {
    focus: controls.indexOf(document.activeElement), count: controls.length,
    views: views.map(({section, table, choice, sortings}) => ({
      title: table.title,
      hidden: table.variants.filter((variant, index) => !choice.shown[index]).map(({name}) => name),
      sorted: sortings.map(({column, order}) => ({column, order})),
      picked: [...section.querySelectorAll("select")].map(pickedIn),
      checked: [...section.querySelectorAll("input")].map((input) => input.checked),
      entered: [...section.querySelectorAll("input")].map(enteredIn),
      open: [...section.querySelectorAll("details")].map((details) => details.open),
      scrolled: [...section.querySelectorAll(".scroll")].map((place) => place.scrollLeft),
    })),
  };
}

function pick(select, text) {
  const option = [...select.options].find(({textContent}) => textContent === text);
  if (!option || (option.selected && !("usual" in select.dataset))) return;
  option.selected = true;
  select.dispatchEvent(new Event("change", {bubbles: true}));
}

function enter(input, value) {
  if (value === null || input.value === value) return;
  input.value = value;
  input.dispatchEvent(new Event("input", {bubbles: true}));
}

function chooseIn({section, table, choice, sortings}, kept) {
  choice.set((shown, index) => !kept.hidden.includes(table.variants[index].name));
  section.querySelectorAll("select").forEach((select, index) => pick(select, kept.picked[index]));
  section.querySelectorAll("input").forEach((input, index) => {
    if (input.checked !== kept.checked[index]) input.click();
    enter(input, kept.entered[index] ?? null);
  });
  sortings.forEach((sorting, index) => {
    const {column, order} = kept.sorted[index] ?? {order: "none"};
    if (order !== "none") sorting.sort(column, order);
  });
  section.querySelectorAll("details").forEach((details, index) => { details.open = kept.open[index] ?? false; });
  section.querySelectorAll(".scroll").forEach((place, index) => { place.scrollLeft = kept.scrolled[index] ?? 0; });
}

function choose({focus, count, views: before}) {
  const left = [...before];  // several may have a title: the first is the first of them
  for (const view of views) {
    const place = left.findIndex(({title}) => title === view.table.title);
    if (place >= 0) chooseIn(view, left.splice(place, 1)[0]);
  }
  const controls = [...document.querySelectorAll(kControls)];
  if (focus >= 0 && controls.length === count) controls[focus].focus({preventScroll: true});
}

if (live.version) setInterval(() => live.look(), 2000);
