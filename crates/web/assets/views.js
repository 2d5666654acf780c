// Saved views: a name for the query of a list, stored only in this browser.

const NAME_MAX = 40;
const VIEWS_MAX = 20;

export function start() {
  const bar = document.querySelector("[data-views]");
  if (bar) draw(bar);
}

function key() {
  return `rutter.views:${location.pathname}`;
}

function saved() {
  try {
    const views = JSON.parse(localStorage.getItem(key()) ?? "[]");
    return Array.isArray(views) ? views.filter((view) => typeof view?.name === "string" && typeof view?.query === "string") : [];
  } catch {
    return [];
  }
}

function keep(views) {
  try {
    localStorage.setItem(key(), JSON.stringify(views.slice(0, VIEWS_MAX)));
  } catch {
    // Without storage the list still works.
  }
}

function draw(bar) {
  for (const old of bar.querySelectorAll("[data-my-view]")) old.remove();
  const query = new URLSearchParams(location.search);
  query.delete("after");
  query.delete("said");
  const here = query.toString();
  const views = saved();
  for (const view of views) {
    const chip = document.createElement("span");
    chip.className = "chip";
    chip.dataset.myView = "";
    const link = document.createElement("a");
    link.href = `${location.pathname}?${view.query}`;
    link.textContent = view.name;
    if (view.query === here) link.setAttribute("aria-current", "true");
    const remove = document.createElement("button");
    remove.type = "button";
    remove.textContent = "✕";
    remove.setAttribute("aria-label", `Delete the view ${view.name}`);
    remove.addEventListener("click", () => {
      keep(saved().filter((other) => other.name !== view.name));
      draw(bar);
    });
    chip.append(link, remove);
    bar.append(chip);
  }
  if (!here || views.some((view) => view.query === here)) return;
  const form = document.createElement("form");
  form.dataset.myView = "";
  form.className = "chip";
  const name = document.createElement("input");
  name.type = "text";
  name.maxLength = NAME_MAX;
  name.required = true;
  name.placeholder = "Name this view";
  name.setAttribute("aria-label", "Name of the view");
  const save = document.createElement("button");
  save.textContent = "+";
  save.setAttribute("aria-label", "Save this view");
  form.append(name, save);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const others = saved().filter((view) => view.name !== name.value.trim());
    keep([...others, { name: name.value.trim(), query: here }]);
    draw(bar);
  });
  bar.append(form);
}
