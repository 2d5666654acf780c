// Starts all modules. Each enhances pages that work without it.

import * as copy from "./copy.js";
import * as graph from "./graph.js";
import * as json from "./json.js";
import * as keys from "./keys.js";
import * as live from "./live.js";
import * as palette from "./palette.js";
import * as views from "./views.js";

// Shows elements that need scripts.
document.documentElement.dataset.scripts = "on";

for (const module of [copy, graph, json, palette, keys, views, live]) module.start();

// The theme is stored in a cookie, so that the server renders the next page with it.
const THEMES = { auto: ["dark", "◐ Auto"], dark: ["light", "● Dark"], light: ["auto", "○ Light"] };
const themeButton = document.querySelector("[data-theme-button]");
themeButton?.form.addEventListener("submit", (event) => {
  event.preventDefault();
  const theme = themeButton.value;
  const [next, word] = THEMES[theme];
  document.cookie = `rutter_theme=${theme}; path=/; max-age=31536000; samesite=strict`;
  document.documentElement.dataset.theme = theme;
  themeButton.value = next;
  themeButton.querySelector("[data-theme-word]").textContent = word;
});

// An element with data-dialog="id" opens that dialog; without scripts it is a link to a page with the same content.
document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-dialog], [data-help]");
  const dialog = opener && document.getElementById(opener.dataset.dialog ?? "help");
  if (dialog instanceof HTMLDialogElement) {
    event.preventDefault();
    dialog.showModal();
  }
  const back = event.target.closest("[data-back]");
  if (back && history.length > 1) {
    event.preventDefault();
    history.back();
  }
});
document.addEventListener("click", (event) => {
  // A click outside a dialog closes it.
  if (event.target instanceof HTMLDialogElement) event.target.close();
});

// The number of selected rows.
document.addEventListener("change", (event) => {
  const form = event.target.form;
  const told = form?.querySelector("[data-chosen]");
  if (!told || event.target.type !== "checkbox") return;
  const count = form.querySelectorAll("input[type=checkbox]:checked").length;
  told.textContent = count ? `${count} selected:` : "Select rows, then:";
});

// Keeps relative times up to date while the page is open.
function relative(at, now) {
  const ms = now - at;
  const seconds = Math.floor(Math.abs(ms) / 1000);
  if (seconds === 0) return "now";
  const rough =
    seconds < 60 ? `${seconds} s`
    : seconds < 3600 ? `${Math.floor(seconds / 60)} min`
    : seconds < 172800 ? `${Math.floor(seconds / 3600)} h`
    : `${Math.floor(seconds / 86400)} d`;
  return ms > 0 ? `${rough} ago` : `in ${rough}`;
}
setInterval(() => {
  if (document.hidden) return;
  const now = Date.now();
  for (const time of document.querySelectorAll("time[datetime]")) {
    if (time.dataset.exact !== undefined) continue;
    const text = relative(Date.parse(time.dateTime), now);
    if (time.textContent !== text) time.textContent = text;
  }
}, 5000);
