// Buttons that copy something, and the small notice that says so.

export function start() {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    event.preventDefault();
    toast((await copy(button.dataset.copy)) ? "Copied" : "This browser does not let pages copy");
  });
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Pages that did not come over a secure connection have no clipboard, but may copy what is selected.
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
