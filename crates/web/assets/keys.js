// Keyboard shortcuts. Off while the user types, and without modifiers except for the palette.

import * as graph from "./graph.js";
import { open as openPalette } from "./palette.js";

const PREFIX_MS = 1200;
let isGoing = 0;

export function start() {
  document.addEventListener("keydown", pressed);
}

function pressed(event) {
  if ((event.metaKey || event.ctrlKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openPalette();
    return;
  }
  const isTyping = event.target.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
  if (event.key === "Escape" && isTyping) {
    event.target.blur();
    return;
  }
  if (isTyping || event.metaKey || event.ctrlKey || event.altKey || event.isComposing) return;
  if (document.querySelector("dialog[open]")) return;
  if (act(event)) event.preventDefault();
}

function act(event) {
  const key = event.key;
  if (isGoing && Date.now() - isGoing < PREFIX_MS) {
    isGoing = 0;
    return click(`[data-key="g ${CSS.escape(key)}"]`);
  }
  switch (key) {
    case "g":
      isGoing = Date.now();
      return true;
    case "?":
      document.getElementById("help")?.showModal();
      return true;
    case "/":
      return focusFilter();
    case "j":
      return move(1);
    case "k":
      return move(-1);
    case "x":
      return choose();
    case "[":
      return step(-1);
    case "]":
      return step(1);
    case "1":
    case "2":
    case "3":
    case "4":
    case "5":
      return click(`.tabs a:nth-child(${key})`);
    case "f":
    case "0":
      return graph.fit();
    case "+":
    case "=":
      return graph.zoom(1.25);
    case "-":
      return graph.zoom(0.8);
    case ".":
      return focus(document.querySelector("main .actions :is(button, a.button):not([hidden])"));
    case "Enter":
      return event.target === document.body && click("[data-my-row] :is([data-open], a)");
    default:
      return false;
  }
}

function click(selector) {
  const element = document.querySelector(selector);
  element?.click();
  return Boolean(element);
}

function focus(element) {
  element?.focus();
  return Boolean(element);
}

function focusFilter() {
  const field = document.querySelector("main [data-focus]") ?? document.getElementById("search");
  const folded = field?.closest("details");
  if (folded) folded.open = true;
  field?.select();
  return focus(field);
}

/** Rows are whatever has data-row; the link in it is what has the focus. */
function move(by) {
  const rows = [...document.querySelectorAll("[data-row]")].filter((row) => row.checkVisibility());
  if (rows.length === 0) return false;
  const here = rows.findIndex((row) => row.dataset.myRow !== undefined);
  const there = here < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, here + by));
  if (rows[here]) delete rows[here].dataset.myRow;
  const row = rows[there];
  row.dataset.myRow = "";
  const link = row.querySelector("[data-open]") ?? row.querySelector("a, button, summary") ?? row;
  link.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
  return true;
}

function choose() {
  const box = document.querySelector("[data-my-row] input[type=checkbox]");
  box?.click();
  return Boolean(box);
}

/** The steps of an execution or plan are links in a data-steps element, one of them the current one. */
function step(by) {
  const links = [...document.querySelectorAll("[data-steps] a[data-step]")];
  if (links.length === 0) return false;
  const here = links.findIndex((link) => link.hasAttribute("aria-current"));
  const there = here < 0 ? (by > 0 ? 0 : links.length - 1) : here + by;
  links[there]?.click();
  return true;
}
