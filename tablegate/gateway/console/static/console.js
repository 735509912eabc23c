// What the pages cannot do by themselves: copy, ask before a deletion, follow changes and metrics. All text goes in as text.
"use strict";

for (const button of document.querySelectorAll("[data-copies]")) {
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copies).textContent);
    button.textContent = "Copied";
  });
}

document.addEventListener("submit", (event) => {
  const question = event.target.dataset.asks;
  if (question && !window.confirm(question)) event.preventDefault();
});

const account = document.querySelector("form.account");
if (account) account.addEventListener("submit", () => {
  for (const key of Object.keys(localStorage)) if (/^(statements of|searches) /.test(key)) localStorage.removeItem(key);
});

prepare(document);

// Show times, and keep tables that become cards on a phone tables for screen readers.
function prepare(part) {
  for (const table of part.querySelectorAll("table.stacked")) {
    table.setAttribute("role", "table");
    for (const row of table.rows) {
      row.setAttribute("role", "row");
      for (const cell of row.cells) {
        const header = row.parentElement.tagName === "THEAD" ? "columnheader" : "rowheader";
        cell.setAttribute("role", cell.tagName === "TH" ? header : "cell");
      }
    }
  }
  for (const time of part.querySelectorAll("[data-ms]")) showTime(time, Number(time.dataset.ms));
  for (const plot of part.querySelectorAll(".plot")) readValues(plot);
}

// The values of a chart under the pointer, and at a place that the arrow keys move. The legend shows them.
function readValues(plot) {
  const chart = plot.closest(".chart");
  const curves = plot.querySelector(".curves");
  const {width, height} = curves.viewBox.baseVal;
  const top = Number(plot.dataset.top);
  const values = [...curves.querySelectorAll("g")].map((line) => {
    const points = [...line.querySelectorAll("polyline")].flatMap((part) => part.getAttribute("points").split(" "));
    return new Map(points.map((point) => point.split(",").map(Number)).map(([x, y]) => [Math.floor(x), top * (1 - y / height)]));
  });
  const shown = [...chart.querySelectorAll(".legend strong")];
  const latest = shown.map((each) => each.textContent);
  const status = chart.querySelector("[role=status]");
  const cursor = document.createElementNS(curves.namespaceURI, "line");
  cursor.setAttribute("class", "cursor");
  cursor.setAttribute("y2", height);
  let place = width;

  function show(at) {
    place = Math.max(0, Math.min(width - 1, at));
    cursor.setAttribute("x1", place + 0.5);
    cursor.setAttribute("x2", place + 0.5);
    curves.append(cursor);
    shown.forEach((each, number) => {
      const value = values[number].get(place);
      each.textContent = value === undefined ? "-" : figure(value, plot.dataset.unit);
    });
    const time = new Date(Date.now() - 1000 * plot.dataset.seconds * (1 - (place + 0.5) / width));
    status.textContent = `at ${time.toISOString().slice(11, 16)} UTC: ` +
      [...chart.querySelectorAll(".legend li")].map((each) => each.textContent.trim()).join(", ");
  }

  function hide() {
    place = width;
    cursor.remove();
    status.textContent = "";
    shown.forEach((each, number) => { each.textContent = latest[number]; });
  }

  plot.addEventListener("pointermove", (event) => {
    const area = curves.getBoundingClientRect();
    show(Math.floor((event.clientX - area.left) / area.width * width));
  });
  plot.addEventListener("pointerleave", hide);
  plot.addEventListener("blur", hide);
  plot.addEventListener("keydown", (event) => {
    const far = Math.ceil(width / 12);
    const next = {ArrowLeft: place - 1, ArrowRight: place + 1, PageUp: place - far, PageDown: place + far, Home: 0, End: width - 1}[event.key];
    if (next === undefined) return;
    event.preventDefault();
    show(next);
  });
}

// A value as metric_pages.py writes it.
function figure(value, unit) {
  const units = unit === "ms" ? [["min", 60000, 1], ["s", 1000, 1], ["ms", 1, 1], ["µs", 0.001, 0]] : [["G", 1e9, 10], ["M", 1e6, 10], ["k", 1e3, 10]];
  const [name, size] = unit === "ms" && value < 1e-9 ? ["ms", 1] : units.find((each) => value >= each[1] * each[2]) || ["", 1];
  const number = value / size;
  const digits = number >= 100 ? Math.round(number).toLocaleString("en") : number >= 0.001 ? String(Number(number.toPrecision(3))) : "0";
  return `${digits} ${name}`.trim();
}

function showTime(element, milliseconds) {
  const date = new Date(milliseconds);
  element.dateTime = date.toISOString();
  element.textContent = date.toISOString().replace("T", " ").replace("Z", " UTC");
}

// Links that do not fit on a narrow screen are scrolled to the current one.
for (const link of document.querySelectorAll(".tabs [aria-current], .site-nav [aria-current]")) {
  const list = link.parentElement;
  list.scrollLeft = link.offsetLeft - list.offsetLeft - (list.clientWidth - link.offsetWidth) / 2;
}

// The list of tables beside a page, and other lists, are filtered as one types.
for (const input of document.querySelectorAll("[data-filters]")) {
  const items = [...document.querySelectorAll(input.dataset.filters)];
  const filter = () => {
    const words = input.value.toLowerCase().split(/\s+/);
    for (const item of items) item.hidden = !words.every((word) => item.textContent.toLowerCase().includes(word));
  };
  input.hidden = false;
  input.addEventListener("input", filter);
  filter();  // the browser may have kept the text
}

// Details that stay as the visitor left them.
for (const details of document.querySelectorAll("details[data-unfolds]")) {
  if (localStorage.getItem(details.dataset.unfolds)) details.open = true;
  details.addEventListener("toggle", () => {
    if (details.open) localStorage.setItem(details.dataset.unfolds, "open");
    else localStorage.removeItem(details.dataset.unfolds);
  });
}

// A menu closes with Escape, and when something else is pressed.
for (const menu of document.querySelectorAll("details.menu")) {
  const summary = menu.querySelector("summary");
  document.addEventListener("click", (event) => { if (!menu.contains(event.target)) menu.open = false; });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    menu.open = false;
    summary.focus();
  });
}

// Parts that are asked for again every ten seconds, while the page is visible.
setInterval(() => {
  if (!document.hidden) document.querySelectorAll("[data-refresh]").forEach(refresh);
}, 10000);

async function refresh(part) {
  const isInUse = () => part.matches(":hover, :focus-within");
  if (isInUse()) return;
  try {
    const answer = await fetch(part.dataset.refresh);
    if (!answer.ok) return;
    const found = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = found.querySelector("[data-refresh]");
    if (isInUse()) return;
    prepare(fresh);
    part.replaceWith(fresh);
  } catch (error) { /* the server is away: it is asked again */ }
}

const list = document.getElementById("changes");
if (list) follow(list, "");

async function follow(list, since) {
  let place = since;
  try {
    const answer = await fetch(list.dataset.from + "&since=" + encodeURIComponent(since));
    if (answer.ok) {
      const found = await answer.json();
      place = found.place;
      for (const change of found.changes) list.prepend(line(change));
      while (list.children.length > 500) list.lastChild.remove();
    }
  } catch (error) { /* the server is away: it is asked again */ }
  setTimeout(() => follow(list, place), 1000);
}

function line(change) {
  const item = document.createElement("li");
  const kind = document.createElement("strong");
  kind.textContent = change.kind;
  const time = document.createElement("time");
  showTime(time, change.at_ms);
  item.append(kind, " ", time, " ", change.key, " ");
  const details = document.createElement("details");
  const summary = document.createElement("summary");
  summary.textContent = "Before and after";
  const images = document.createElement("div");
  images.className = "forms";
  for (const image of [change.old, change.new]) {
    const shown = document.createElement("pre");
    shown.textContent = JSON.stringify(image, null, 2);
    images.append(shown);
  }
  details.append(summary, images);
  item.append(details);
  return item;
}

// A time line beside a field for a second within a window: a slider that writes into the field.
for (const input of document.querySelectorAll("input[data-earliest]")) {
  const earliest = Number(input.dataset.earliest), latest = Number(input.dataset.latest);
  const shown = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 19);
  const line = document.createElement("div");
  line.className = "timeline";
  const slider = document.createElement("input");
  Object.assign(slider, {type: "range", min: earliest, max: latest, step: 1});
  slider.setAttribute("aria-label", "Time line");
  const ends = document.createElement("div");
  ends.className = "ends";
  for (const end of [earliest, latest]) {
    const text = document.createElement("span");
    text.textContent = shown(end).replace("T", " ");
    ends.append(text);
  }
  const follow = () => { slider.value = Date.parse(input.value + "Z") / 1000; };
  slider.addEventListener("input", () => { input.value = shown(Number(slider.value)); });
  input.addEventListener("change", follow);
  line.append(slider, ends);
  input.closest(".field").before(line);
  follow();
}
