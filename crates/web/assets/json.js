// JSON as a collapsible tree. A click on a name copies its path.

import { copy, toast } from "./copy.js";

const ITEMS_MAX = 200;

export function start() {
  document.addEventListener(
    "toggle",
    (event) => {
      if (!event.target.open) return;
      for (const element of event.target.querySelectorAll(":scope > [data-json]")) unfold(element);
    },
    true,
  );
  for (const element of document.querySelectorAll("[data-json]")) {
    if (!element.closest("details:not([open])")) unfold(element);
  }
  document.addEventListener("click", async (event) => {
    const key = event.target.closest(".json [data-my-path]");
    if (!key) return;
    event.preventDefault();
    if (await copy(key.dataset.myPath)) toast(`Copied ${key.dataset.myPath}`);
  });
}

function unfold(element) {
  if (element.source !== undefined) return;
  const text = element.textContent;
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    return;
  }
  if (value === null || typeof value !== "object") return;
  // patch.js compares with the original text.
  element.source = text;
  element.replaceChildren(...branches(value, "$"));
}

function branches(value, path) {
  const names = Object.keys(value);
  const shown = names.slice(0, ITEMS_MAX).map((name) => {
    const isIndex = Array.isArray(value);
    const here = isIndex ? `${path}[${name}]` : /^[A-Za-z_]\w*$/.test(name) ? `${path}.${name}` : `${path}[${JSON.stringify(name)}]`;
    return branch(name, value[name], here);
  });
  if (names.length > ITEMS_MAX) shown.push(line(text("quiet", `… ${names.length - ITEMS_MAX} more`)));
  return shown;
}

function branch(name, value, path) {
  const key = text("key", name);
  key.dataset.myPath = path;
  key.title = `Copy ${path}`;
  if (value === null || typeof value !== "object") {
    const isText = typeof value === "string";
    return line(key, ": ", text(isText ? "text" : "other", isText ? JSON.stringify(value) : String(value)));
  }
  const size = Object.keys(value).length;
  const open = Array.isArray(value) ? `[${size}]` : `{${size}}`;
  if (size === 0) return line(key, ": ", text("quiet", open));
  const details = document.createElement("details");
  const summary = document.createElement("summary");
  summary.append(key, ": ", text("quiet", open));
  details.append(summary);
  const fill = () => {
    if (details.children.length === 1) details.append(...branches(value, path));
  };
  details.addEventListener("toggle", fill, { once: true });
  details.open = size <= 12 && path.split(/[.[]/).length <= 3;
  if (details.open) fill();
  return details;
}

function line(...parts) {
  const element = document.createElement("div");
  element.append(...parts);
  return element;
}

function text(kind, words) {
  const element = document.createElement("span");
  element.className = kind;
  element.textContent = words;
  return element;
}
