// Begins everything. Each module improves pages that work without it.

import * as copy from "./copy.js";
import * as graph from "./graph.js";
import * as json from "./json.js";
import * as keys from "./keys.js";
import * as live from "./live.js";
import * as palette from "./palette.js";
import * as views from "./views.js";

// Shows what only scripts can do.
document.documentElement.dataset.scripts = "on";

for (const module of [copy, graph, json, palette, keys, views, live]) module.start();

// The theme is remembered in a cookie, so that the server writes the next page in it at once.
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

// Anything with data-dialog="id" opens that dialog; without scripts it is a link to a page that says the same.
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
  // A click beside a dialog closes it.
  if (event.target instanceof HTMLDialogElement) event.target.close();
});

// How many rows are chosen.
document.addEventListener("change", (event) => {
  const form = event.target.form;
  const told = form?.querySelector("[data-chosen]");
  if (!told || event.target.type !== "checkbox") return;
  const count = form.querySelectorAll("input[type=checkbox]:checked").length;
  told.textContent = count ? `${count} chosen:` : "Choose rows, then:";
});

// Keeps "3 min ago" right while the page stands open.
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
