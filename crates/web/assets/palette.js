// The command palette: pages, items on this page, and search results from the server.

const LOOK_AFTER_MS = 180;
const SHOWN_MAX = 12;
const FOUND_MAX = 5;

let dialog, input, list;
let items = [];
let found = [];
let at = 0;
let looking;

export function start() {
  dialog = document.getElementById("palette");
  if (!dialog) return;
  input = dialog.querySelector("input");
  list = dialog.querySelector("ul");
  input.addEventListener("input", () => {
    found = [];
    at = 0;
    draw();
    clearTimeout(looking);
    looking = setTimeout(look, LOOK_AFTER_MS);
  });
  input.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) {
      event.preventDefault();
      at = items.length ? (at + by + items.length) % items.length : 0;
      mark();
    } else if (event.key === "Enter") {
      event.preventDefault();
      go(items[at]);
    }
  });
  list.addEventListener("click", (event) => {
    const row = event.target.closest("li");
    if (row) go(items[Number(row.dataset.at)]);
  });
}

export function open() {
  if (!dialog || dialog.open) return;
  input.value = "";
  found = [];
  at = 0;
  dialog.showModal();
  draw();
}

function go(item) {
  if (!item) return;
  dialog.close();
  if (item.act) item.act();
  else location.assign(item.href);
}

function fixed() {
  const pages = [...document.querySelectorAll("#rail a")].map((link) => ({
    label: link.childNodes[1]?.textContent.trim() || link.textContent.trim(),
    href: link.href,
    note: link.dataset.key,
  }));
  const rows = [...document.querySelectorAll("main [data-open]")].slice(0, 60).map((link) => ({
    label: link.textContent.trim(),
    href: link.href,
    note: "on this page",
  }));
  const theme = document.querySelector("[data-theme-button]");
  const acts = [
    { label: "Keyboard shortcuts", note: "?", act: () => document.getElementById("help")?.showModal() },
    { label: "Switch theme", note: "", act: () => theme?.click() },
  ];
  return [...pages, ...acts, ...rows];
}

function searches(words) {
  const text = encodeURIComponent(words);
  const direct = /^exec_\w+$/.test(words)
    ? [{ label: `Open ${words}`, href: `/executions/${text}`, note: "execution" }]
    : /^plan_\w+(@\d+)?$/.test(words)
      ? [{ label: `Open ${words}`, href: `/plans/${text}`, note: "plan" }]
      : [];
  return [
    ...direct,
    { label: `Search executions for “${words}”`, href: `/executions?text=${text}`, note: "" },
    { label: `Search the journal for “${words}”`, href: `/journal?text=${text}`, note: "" },
  ];
}

/** The pages that list things answer in HTML like any other; their rows are what was found. */
async function look() {
  const words = input.value.trim();
  if (words.length < 2) return;
  const lists = [["/plans", "plan"], ["/executions", "execution"]];
  const results = await Promise.all(
    lists.map(async ([path, note]) => {
      try {
        const response = await fetch(`${path}?text=${encodeURIComponent(words)}`);
        if (!response.ok) return [];
        const page = new DOMParser().parseFromString(await response.text(), "text/html");
        const links = [...page.querySelectorAll("main [data-open]")].slice(0, FOUND_MAX);
        return links.map((link) => ({ label: link.textContent.trim(), href: link.getAttribute("href"), note }));
      } catch {
        return [];
      }
    }),
  );
  if (input.value.trim() !== words) return;
  found = results.flat();
  draw();
}

function draw() {
  const words = input.value.trim();
  const wanted = words.toLowerCase();
  const known = fixed().filter((item) => item.label.toLowerCase().includes(wanted));
  const all = words ? [...known.slice(0, SHOWN_MAX - 4), ...found, ...searches(words)] : known;
  items = all.slice(0, SHOWN_MAX + FOUND_MAX);
  list.replaceChildren(
    ...items.map((item, number) => {
      const row = document.createElement("li");
      row.id = `palette-${number}`;
      row.dataset.at = number;
      row.setAttribute("role", "option");
      const note = document.createElement("span");
      note.className = "quiet";
      note.textContent = item.note;
      row.append(item.label, note);
      return row;
    }),
  );
  at = Math.min(at, Math.max(0, items.length - 1));
  mark();
}

function mark() {
  for (const row of list.children) row.setAttribute("aria-selected", Number(row.dataset.at) === at);
  input.setAttribute("aria-activedescendant", items.length ? `palette-${at}` : "");
  list.children[at]?.scrollIntoView({ block: "nearest" });
}
