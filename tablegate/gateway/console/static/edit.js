// Comfort of the forms of a row. Without this script the same fields and buttons do the work. All text goes in as text.
"use strict";

const CONTAINERS = {LIST: "L", MAP: "M", TEXT_SET: "SS", DECIMAL_SET: "NS", BYTES_SET: "BS"};
const MEMBERS = {S: "TEXT", N: "DECIMAL", B: "BYTES", BOOL: "BOOL", NULL: "NULL", L: "LIST", M: "MAP", SS: "TEXT_SET", NS: "DECIMAL_SET", BS: "BYTES_SET"};
const OF_SETS = {SS: "S", NS: "N", BS: "B"};

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  if (properties.label) made.setAttribute("aria-label", properties.label);
  made.append(...children);
  return made;
}

for (const form of document.querySelectorAll("form.edit")) editForm(form);

// Prepare a form: changes are marked, attributes are added and removed in place, Ctrl+Enter saves.
function editForm(form) {
  for (const attribute of form.querySelectorAll("fieldset.attribute")) editAttribute(attribute);
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    form.requestSubmit(form.querySelector("button.primary"));
  });
  form.addEventListener("input", () => countChanges(form));
  form.addEventListener("submit", (event) => {
    // JSON would have only one of two members with the same name.
    const doubled = form.querySelector(".member[aria-invalid=true]:not(:disabled)");
    if (!doubled) return;
    event.preventDefault();
    doubled.focus();
  });
  const add = form.querySelector("[value=add]");
  if (add) add.addEventListener("click", (event) => {
    event.preventDefault();
    addAttribute(form).querySelector("[name^=name]").focus();
    countChanges(form);
  });
}

function addAttribute(form) {
  const template = form.querySelector("#new-attribute");
  const numbers = [...form.querySelectorAll("[name^=name]")].map((field) => Number(field.name.slice(4)) || 0);
  const added = template.content.cloneNode(true).querySelector("fieldset");
  for (const field of added.querySelectorAll("[name]")) field.name = field.name.replace("NEW", 1 + Math.max(...numbers));
  template.before(added);
  editAttribute(added);
  added.classList.add("changed");
  return added;
}

function countChanges(form) {
  const shown = form.querySelector("#changes-made");
  const number = form.querySelectorAll("fieldset.changed, fieldset.removed").length;
  if (shown) shown.textContent = number ? `${number} change${number > 1 ? "s" : ""} to save` : "";
}

function editAttribute(attribute) {
  const isNew = !attribute.querySelector("[name^=name]").value;
  const wasChanged = attribute.classList.contains("changed");
  const before = stateOf(attribute);
  showTree(attribute);
  attribute.addEventListener("input", () => {
    attribute.classList.toggle("changed", isNew || wasChanged || stateOf(attribute) !== before);
    checkRule(attribute);
  });
  const type = attribute.querySelector("select[name^=type]");
  if (type) type.addEventListener("change", () => {
    showControl(attribute, kindOf(attribute));
    attribute.dispatchEvent(new Event("input", {bubbles: true}));
  });
  const remove = attribute.querySelector("[name=step]");
  if (remove) remove.addEventListener("click", (event) => {
    event.preventDefault();
    const isRemoved = attribute.classList.toggle("removed");
    for (const field of attribute.querySelectorAll("input, select, textarea, .tree button")) field.disabled = isRemoved;
    remove.textContent = isRemoved ? "Undo" : "Remove";
    countChanges(attribute.form);
  });
}

// The name, type and value of an attribute as one text.
function stateOf(attribute) {
  const fields = attribute.querySelectorAll("[name^=name], [name^=type], [name^=value]");
  return JSON.stringify([...fields].map((field) => field.type === "checkbox" ? String(field.checked) : field.value));
}

function typeOf(attribute) {
  const type = attribute.querySelector("[name^=type]");
  return type.matches("select") ? type.selectedOptions[0] : type;
}

function kindOf(attribute) { return typeOf(attribute).dataset.kind; }

function valueOf(attribute) { return attribute.querySelector("[name^=value]"); }

// Show the control for values of a kind in place of the present one. The text is kept where it can be.
function showControl(attribute, kind) {
  const old = valueOf(attribute);
  const {name} = old;
  const text = old.type === "checkbox" ? String(old.checked) : old.value;
  attribute.querySelector(".tree")?.remove();
  let control;
  if (kind === "BOOL") {
    control = element("input", {type: "checkbox", name, value: "true", checked: text === "true"});
    control.setAttribute("role", "switch");
  } else if (kind === "DATETIME") {
    control = element("input", {type: "datetime-local", name, step: "1"});
  } else if (["DECIMAL", "INT32", "INT64", "DOUBLE", "GUID", "NULL"].includes(kind)) {
    control = element("input", {name, value: kind === "NULL" ? "" : text, className: "code", autocomplete: "off"});
    control.inputMode = kind.startsWith("INT") ? "numeric" : kind === "GUID" || kind === "NULL" ? "text" : "decimal";
    if (kind === "NULL") control.placeholder = "null";
  } else {
    const empty = kind === "MAP" ? "{}" : kind in CONTAINERS ? "[]" : "";
    control = element("textarea", {name, className: "code", rows: 1, spellcheck: false, value: parsed(kind, text) ? text : empty || text});
  }
  old.replaceWith(control);
  showTree(attribute);
}

// Say below a value what its type requires. The server checks it again.
function checkRule(attribute) {
  const field = valueOf(attribute);
  const kind = kindOf(attribute);
  const wrong = attribute.querySelector(".tree [aria-invalid=true]");
  const isWrong = wrong || field.matches("input:not([type=checkbox]), textarea") && field.value !== "" && !fits(kind, field.value);
  let note = attribute.querySelector(".error");
  if (!isWrong) {
    note?.remove();
    field.removeAttribute("aria-invalid");
    field.removeAttribute("aria-describedby");
    attribute.classList.remove("invalid");
    return;
  }
  if (!note) {
    note = element("p", {className: "error", id: field.name.replace("value", "error")});
    attribute.querySelector(".entry").append(note);
  }
  if (!wrong) note.textContent = typeOf(attribute).dataset.rule;
  else if (wrong.matches(".member")) note.textContent = "There is another member of this name.";
  else note.textContent = attribute.querySelector(`option[data-kind=${MEMBERS[wrong.parentElement.dataset.type]}]`).dataset.rule;
  field.setAttribute("aria-invalid", "true");
  field.setAttribute("aria-describedby", note.id);
  attribute.classList.add("invalid");
}

function fits(kind, text) {
  const trimmed = text.trim();
  switch (kind) {
    case "DECIMAL": {
      const digits = /^[+-]?(\d*)\.?(\d*)(?:e[+-]?\d+)?$/i.exec(trimmed);
      return digits !== null && digits[1] + digits[2] !== "" && (digits[1] + digits[2]).replace(/^0+|0+$/g, "").length <= 38;
    }
    case "INT32": return /^[+-]?\d{1,20}$/.test(trimmed) && BigInt.asIntN(32, BigInt(trimmed.replace("+", ""))) === BigInt(trimmed.replace("+", ""));
    case "INT64": return /^[+-]?\d{1,20}$/.test(trimmed) && BigInt.asIntN(64, BigInt(trimmed.replace("+", ""))) === BigInt(trimmed.replace("+", ""));
    case "DOUBLE": return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(trimmed) || ["NaN", "Infinity", "-Infinity"].includes(trimmed);
    case "GUID": return /^[\da-f]{8}-?([\da-f]{4}-?){3}[\da-f]{12}$/i.test(trimmed);
    case "BYTES": return /^([\w+/-]{4})*([\w+/-]{2}==|[\w+/-]{3}=)?$/.test(trimmed);
    case "NULL": return trimmed === "";
    default: return !(kind in CONTAINERS) || parsed(kind, text) !== null;
  }
}

// Lists, maps and sets: a tree beside their JSON. A change of one changes the other.

// Return the members of a list, map or set from its JSON: pairs of name and typed value. null if it is not valid.
function parsed(kind, text) {
  const tag = CONTAINERS[kind];
  if (!tag) return null;
  try {
    // Numbers keep all their digits: they are read as texts.
    const document = JSON.parse(tag === "NS" ? text.replace(/"[^"]*"|[^\s,[\]"]+/g, (each) => each[0] === '"' ? each : `"${each}"`) : text);
    return membersOf(tag, document);
  } catch (error) { return null; }
}

function membersOf(tag, data) {
  if (tag === "M" ? data === null || typeof data !== "object" || Array.isArray(data) : !Array.isArray(data)) throw new Error(tag);
  const members = tag === "M" ? Object.entries(data) : data.map((each) => ["", tag === "L" ? each : {[OF_SETS[tag]]: each}]);
  for (const [, member] of members) checkMember(member);
  return members;
}

function checkMember(member) {
  const [[tag, data], ...rest] = Object.entries(member);
  if (rest.length || !(tag in MEMBERS)) throw new Error(tag);
  if (MEMBERS[tag] in CONTAINERS) membersOf(tag, data);
  else if (typeof data !== (tag === "BOOL" || tag === "NULL" ? "boolean" : "string")) throw new Error(tag);
}

function showTree(attribute) {
  const kind = kindOf(attribute);
  const field = valueOf(attribute);
  const members = field.matches("textarea") && !field.readOnly ? parsed(kind, field.value) : null;
  if (!members) return;
  const name = attribute.querySelector("[name^=name]").value || "the new attribute";
  const tree = element("div", {className: "tree"});
  const build = (found) => tree.replaceChildren(branch(CONTAINERS[kind], found, name));
  const write = () => {
    const data = dataOf(tree.firstChild);
    field.value = kind === "DECIMAL_SET" ? `[${data.join(", ")}]` : JSON.stringify(data, null, kind in {LIST: 0, MAP: 0} ? 2 : 0);
  };
  build(members);
  tree.addEventListener("input", write);
  tree.addEventListener("change", write);
  tree.addEventListener("changed", () => {
    write();
    field.dispatchEvent(new Event("input", {bubbles: true}));
  });
  field.addEventListener("input", (event) => {
    const found = event.isTrusted ? parsed(kind, field.value) : null;
    if (found) build(found);
  });
  attribute.querySelector(".entry").prepend(tree);
}

// The members of a list, map or set as a list of fields, with a button that adds one.
function branch(tag, members, path) {
  const list = element("ul");
  list.dataset.tag = tag;
  const add = element("button", {type: "button", className: "small quiet", textContent: "Add", label: `Add to ${path}`});
  const last = element("li", {}, add);
  for (const [name, member] of members) list.append(twig(tag, name, member, path));
  list.append(last);
  add.addEventListener("click", () => {
    const added = twig(tag, "", {[OF_SETS[tag] || "S"]: tag === "NS" ? "0" : ""}, path);
    last.before(added);
    added.querySelector("input, textarea").focus();
    list.dispatchEvent(new CustomEvent("changed", {bubbles: true}));
  });
  return list;
}

// One member: its name in a map, its type, its value, and a button that removes it.
function twig(tag, name, member, path) {
  const item = element("li");
  const own = `${path} ${name || "member"}`;
  if (tag === "M") item.append(element("input", {className: "member", value: name, placeholder: "name", label: `Name in ${path}`, autocomplete: "off"}));
  const [[type, data]] = Object.entries(member);
  const types = element("select", {label: `Type of ${own}`});
  for (const each of OF_SETS[tag] ? [OF_SETS[tag]] : Object.keys(MEMBERS)) types.append(new Option(each, each, each === type, each === type));
  if (!OF_SETS[tag]) item.append(types);
  item.dataset.type = type;
  item.append(leaf(type, data, own));
  const remove = element("button", {type: "button", className: "small quiet", textContent: "×", label: `Remove ${own}`});
  item.append(remove);
  types.addEventListener("change", () => {
    const old = item.querySelector(":scope > .leaf, :scope > ul");
    const text = old.matches(".leaf") && old.type !== "checkbox" ? old.value : "";
    const empty = {BOOL: false, NULL: true, M: {}}[types.value] ?? (MEMBERS[types.value] in CONTAINERS ? [] : text);
    item.dataset.type = types.value;
    old.replaceWith(leaf(types.value, empty, own));
    item.dispatchEvent(new CustomEvent("changed", {bubbles: true}));
  });
  remove.addEventListener("click", () => {
    const {parentElement} = item;
    const next = item.nextElementSibling.querySelector("input, textarea, select, button");
    item.remove();
    next.focus();
    parentElement.dispatchEvent(new CustomEvent("changed", {bubbles: true}));
  });
  return item;
}

function leaf(type, data, path) {
  const properties = {className: "leaf code", label: `Value of ${path}`, autocomplete: "off"};
  if (MEMBERS[type] in CONTAINERS) return branch(type, membersOf(type, data), path);
  if (type === "BOOL") {
    const made = element("input", {...properties, type: "checkbox", checked: data});
    made.setAttribute("role", "switch");
    return made;
  }
  if (type === "NULL") return element("input", {...properties, value: "null", readOnly: true});
  if (type === "S") return element("textarea", {...properties, rows: 1, value: data, spellcheck: false});
  return element("input", {...properties, value: data, inputMode: type === "N" ? "decimal" : "text"});
}

// Return the JSON of a list, map or set from its fields.
function dataOf(list) {
  const {tag} = list.dataset;
  const members = [...list.children].slice(0, -1).map((item) => {
    const {type} = item.dataset;
    const field = item.querySelector(":scope > .leaf");
    const data = !field ? dataOf(item.querySelector(":scope > ul")) : type === "BOOL" ? field.checked : type === "NULL" ? true : field.value;
    if (field && !field.readOnly && type !== "BOOL") field.setAttribute("aria-invalid", String(!fits(MEMBERS[type], data)));
    return [item.querySelector(":scope > .member")?.value, OF_SETS[tag] ? data : {[type]: data}];
  });
  const names = members.map(([name]) => name);
  for (const [number, field] of [...list.querySelectorAll(":scope > li > .member")].entries()) {
    field.setAttribute("aria-invalid", String(names.indexOf(field.value) < number));
  }
  return tag === "M" ? Object.fromEntries(members) : members.map(([, data]) => data);
}
