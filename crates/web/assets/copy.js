// Copy buttons, and the notice that confirms a copy.

export function start() {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    event.preventDefault();
    toast((await copy(button.dataset.copy)) ? "Copied" : "This browser does not allow pages to copy");
  });
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Pages loaded over an insecure connection have no clipboard API, but may copy the selection.
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "unseen";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

let hiding;
export function toast(text) {
  let notice = document.querySelector(".toast");
  if (!notice) {
    notice = document.createElement("div");
    notice.className = "toast";
    notice.setAttribute("role", "status");
    document.body.append(notice);
  }
  notice.hidden = false;
  notice.textContent = text;
  clearTimeout(hiding);
  hiding = setTimeout(() => (notice.hidden = true), 2500);
}
