// Comfort of the pages about rows. Without this script, links and buttons do the same. All text goes in as text.
"use strict";

// Another index has another key: its fields come with a new page.
for (const select of document.querySelectorAll("[data-reloads]")) {
  select.addEventListener("change", () => {
    for (const field of select.form.querySelectorAll('[name^="key"], [name="upper"]')) field.value = "";
    select.form.requestSubmit();
  });
}

// The chosen columns are in the address of the page. The browser remembers them for each table.
const chooser = document.querySelector("[data-remembers]");
if (chooser) rememberColumns(chooser);

function rememberColumns(form) {
  const key = form.dataset.remembers;
  form.addEventListener("submit", () => {
    localStorage.setItem(key, JSON.stringify(new FormData(form).getAll("columns").filter(Boolean)));
  });
  form.querySelector("[data-forgets]").addEventListener("click", () => localStorage.removeItem(key));
  const address = new URL(location.href);
  const kept = JSON.parse(localStorage.getItem(key) || "[]");
  if (!kept.length || address.searchParams.has("columns")) return;
  for (const name of kept) address.searchParams.append("columns", name);
  location.replace(address);
}

// A further filter is a copy of the last one, with the next number.
for (const button of document.querySelectorAll("[data-adds]")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const filters = document.querySelectorAll(".filter");
    const number = filters.length;
    if (number >= 8) return;
    const added = filters[number - 1].cloneNode(true);
    added.setAttribute("aria-label", "Filter " + (number + 1));
    added.querySelector(".error")?.remove();
    for (const field of added.querySelectorAll("input, select")) {
      field.name = field.name.replace(/\d*$/, number);
      field.removeAttribute("aria-invalid");
      if (field.matches("select")) field.selectedIndex = 0;
      else field.value = "";
    }
    filters[number - 1].after(added);
    added.querySelector("input").focus();
  });
}

// The comparison "between" needs the second value, which is folded.
for (const select of document.querySelectorAll("select[name=operator]")) {
  select.addEventListener("change", () => {
    const upper = select.form.elements.upper;
    if (select.value !== "between" || !upper) return;
    upper.closest("details").open = true;
    upper.focus();
  });
}

// The last searches of a table stay in this browser, for each visitor apart, until the visitor signs out (console.js).
const searched = document.querySelector("[data-search]");
const recent = document.querySelector(".recent");
if (recent) rememberSearches();

function rememberSearches() {
  const key = recent.dataset.of;
  let kept = JSON.parse(localStorage.getItem(key) || "[]");
  const address = new URL(location.href);
  for (const name of ["after", "before", "found", "scanned"]) address.searchParams.delete(name);
  if (searched) {
    const [text, query] = [searched.dataset.search, address.search];
    kept = [[text, query], ...kept.filter((each) => each[0] !== text)].slice(0, 9);
    localStorage.setItem(key, JSON.stringify(kept));
  }
  for (const [text, query] of kept) {
    if (searched && text === searched.dataset.search) continue;
    const link = document.createElement("a");
    link.href = query;
    link.textContent = text;
    recent.append(link, " ");
    recent.hidden = false;
  }
}

// A search that stopped after some time goes on by itself until the page is full, or until it is cancelled.
const results = document.getElementById("results");
if (results && results.dataset.onward) goOn(results);

async function goOn(shown) {
  let isCancelled = false;
  const onward = document.getElementById("onward");
  const cancel = document.createElement("button");
  cancel.type = "button";
  cancel.className = "small";
  cancel.textContent = "Cancel";
  cancel.addEventListener("click", () => { isCancelled = true; });
  onward.replaceWith(cancel);
  while (shown.dataset.onward && !isCancelled) {
    const page = await pageAt(fetch(shown.dataset.onward));
    const found = page && page.getElementById("results");
    if (!found) break;
    const rows = shown.querySelector("#rows tbody");
    const more = found.querySelector("#rows tbody");
    if (rows && more) rows.append(...more.children);
    if (!rows && more) {
      const empty = shown.querySelector(".empty");
      if (empty) empty.replaceWith(found.querySelector(".scroll"));
    }
    if (found.querySelector(".code-block")) shown.querySelector(".pager").before(...found.querySelectorAll(".code-block"));
    document.getElementById("count").textContent = found.querySelector("#count").textContent;
    shown.querySelector(".pager").replaceWith(found.querySelector(".pager"));
    shown.dataset.onward = found.dataset.onward;
  }
  if (shown.dataset.onward) {
    onward.href = shown.dataset.onward;
    cancel.replaceWith(onward);
  } else cancel.remove();
}

async function pageAt(request) {
  try {
    const answer = await request;
    return answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
  } catch (error) { return null; }  // the server is away: the link stays
}

// One value is changed in its cell. The form of its row is fetched, and sent with this one change: so the server checks that the row
// is still the same, and that the visitor may change it.
const cells = document.getElementById("rows");
const cellHint = document.getElementById("cell-hint");
if (cells && cellHint) changeCells(cells);

function changeCells(table) {
  cellHint.hidden = false;
  const isValue = (cell) => cell && cell.matches("tr[data-edit] > td[data-label]:not(:has(> a))");
  table.addEventListener("dblclick", (event) => {
    const cell = event.target.closest("td");
    if (isValue(cell) && !event.target.closest("form")) changeCell(cell);
  });
  table.addEventListener("keydown", (event) => {
    const cell = event.target.closest("td, th");
    if (!cell || event.target.closest("form, input") || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Enter" && event.target === cell && isValue(cell)) changeCell(cell);
    else if (!moved(cell, event.key)) return;
    event.preventDefault();
  });
}

function moved(cell, key) {
  const row = cell.parentElement;
  const next = {
    ArrowLeft: cell.previousElementSibling, ArrowRight: cell.nextElementSibling,
    ArrowUp: row.previousElementSibling?.cells[cell.cellIndex], ArrowDown: row.nextElementSibling?.cells[cell.cellIndex],
  }[key];
  if (!next) return false;
  const target = next.querySelector("a, input") || next;
  if (target === next) next.tabIndex = -1;
  target.focus();
  return true;
}

async function changeCell(cell) {
  const row = cell.parentElement;
  const address = row.dataset.edit;
  const page = await pageAt(fetch(address));
  const form = page && page.querySelector("form.edit");
  if (!form || form.querySelector("[name=row]")) { location = address; return; }
  const shown = document.importNode(form, true);
  const named = [...shown.querySelectorAll("fieldset.attribute")].find((each) => each.querySelector("[name^=name]").value === cell.dataset.label);
  shown.classList.add("in-cell");
  editForm(shown);
  const attribute = named || addAttribute(shown);
  if (!named) {
    attribute.querySelector("[name^=name]").value = cell.dataset.label;
    attribute.querySelector("label:has(select)").classList.add("chosen-type");
  }
  for (const each of shown.querySelectorAll("fieldset.attribute")) each.hidden = each !== attribute;
  shown.querySelector("[value=add]").remove();
  const before = [...cell.childNodes];
  const close = () => {
    cell.replaceChildren(...before);
    cell.tabIndex = -1;
    cell.focus();
  };
  shown.querySelector(".actions a").addEventListener("click", (event) => {
    event.preventDefault();
    close();
  });
  shown.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
  shown.addEventListener("submit", async (event) => {
    if (event.defaultPrevented) return;
    event.preventDefault();
    const answer = await fetch(shown.action, {method: "POST", body: new URLSearchParams(new FormData(shown))});
    const found = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (answer.ok) { await showRow(row, cell.cellIndex); return; }
    const reason = found.querySelector("fieldset .error") || found.querySelector("[role=alert]");
    shown.querySelector("[role=alert]")?.remove();
    const alert = element("p", {textContent: reason ? reason.textContent : "The server does not answer."});
    alert.setAttribute("role", "alert");
    attribute.querySelector(".error")?.remove();
    attribute.after(alert);
  });
  cell.replaceChildren(shown);
  const field = shown.querySelector("fieldset:not([hidden]) .entry :is(input, textarea)");
  field.focus();
  field.select();
}

// Show a row as the server has it now. If it is no longer on the page, the page is loaded again.
async function showRow(row, at) {
  const page = await pageAt(fetch(location.href));
  const fresh = page && [...page.querySelectorAll("#rows tr[data-edit]")].find((each) => each.dataset.edit === row.dataset.edit);
  const isSame = fresh && page.querySelector("#rows thead").textContent === document.querySelector("#rows thead").textContent;
  if (!isSame) { location.reload(); return; }
  prepare(page);
  row.replaceWith(fresh);
  fresh.cells[at].tabIndex = -1;
  fresh.cells[at].focus();
}

// A change of many rows goes on by itself, too.
const bulk = document.getElementById("bulk");
if (bulk && bulk.dataset.onward) changeOn(bulk);

async function changeOn(shown) {
  let isCancelled = false;
  const cancel = document.createElement("button");
  cancel.type = "button";
  cancel.textContent = "Cancel";
  cancel.addEventListener("click", () => { isCancelled = true; });
  shown.after(cancel);
  document.getElementById("bulk-onward").hidden = true;
  while (document.getElementById("bulk").dataset.onward && !isCancelled) {
    const form = document.querySelector("#bulk form");
    const page = await pageAt(fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) }));
    const found = page && page.getElementById("bulk");
    if (!found) break;
    document.getElementById("bulk").replaceWith(found);
    const button = document.getElementById("bulk-onward");
    if (button) button.hidden = true;
  }
  const button = document.getElementById("bulk-onward");
  if (button) button.hidden = false;
  cancel.remove();
}

// The statements that were run stay in this browser, for each visitor apart, until the visitor signs out (console.js).
const statements = document.querySelector("[data-history]");
if (statements) rememberStatements(statements);

function rememberStatements(form) {
  const key = form.dataset.history;
  const section = document.getElementById("statements");
  const kept = () => JSON.parse(localStorage.getItem(key) || "[]");
  form.addEventListener("submit", () => {
    const text = form.elements.statement.value.trim();
    if (text) localStorage.setItem(key, JSON.stringify([text, ...kept().filter((each) => each !== text)].slice(0, 50)));
  });
  section.querySelector("[data-clears]").addEventListener("click", () => {
    localStorage.removeItem(key);
    section.hidden = true;
  });
  section.hidden = !kept().length;
  for (const text of kept()) {
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet statement";
    button.textContent = text;
    button.addEventListener("click", () => {
      form.elements.statement.value = text;
      form.elements.statement.focus();
    });
    item.append(button);
    section.querySelector("ol").append(item);
  }
}
