// Updates the page from a newer version without disturbing the user: focus, input, scroll position, selection and
// opened details stay as they are.
//
// Elements with data-patch and an id become equal to their new version. In a data-list new children are announced
// ("pill"), inserted on top ("tail"), added and removed ("sync"), or ignored ("still"). Attributes set by scripts
// begin with data-my- and are never removed; data-keep leaves an element unchanged.

const TAIL_MAX = 400;

export function patch(next, isPaused) {
  const focused = document.activeElement;
  for (const fresh of next.querySelectorAll("[data-patch][id]")) {
    const old = document.getElementById(fresh.id);
    if (old && !old.isEqualNode(fresh)) morph(old, fresh);
  }
  for (const fresh of next.querySelectorAll("[data-list][id]")) {
    bringIn(document.getElementById(fresh.id), fresh, isPaused);
  }
  if (focused?.id && document.activeElement === document.body) document.getElementById(focused.id)?.focus();
  document.dispatchEvent(new CustomEvent("patched"));
}

function bringIn(list, fresh, isPaused) {
  const mode = fresh.dataset.list;
  const added = [...fresh.children].filter((child) => child.id && !document.getElementById(child.id));
  if (mode === "pill" || (!list && mode !== "still")) {
    const pill = document.getElementById("pill");
    if (!pill) return;
    pill.hidden = added.length === 0;
    pill.textContent = added.length === fresh.children.length ? `${added.length}+ new` : `${added.length} new`;
  } else if (mode === "tail" && !isPaused) {
    list.prepend(...added.map((child) => document.importNode(child, true)));
    while (list.children.length > TAIL_MAX) list.lastElementChild.remove();
  } else if (mode === "sync") {
    morph(list, fresh);
  }
}

export function morph(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
    old.replaceWith(document.importNode(fresh, true));
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  if (old.dataset.keep !== undefined || old.source === fresh.textContent) return;
  attributes(old, fresh);
  // Typed or selected values are not in the children.
  if (old instanceof HTMLTextAreaElement || old === document.activeElement && old instanceof HTMLSelectElement) return;
  children(old, fresh);
}

function attributes(old, fresh) {
  const isMine = (name) =>
    name.startsWith("data-my-") ||
    (name === "open" && (old instanceof HTMLDetailsElement || old instanceof HTMLDialogElement)) ||
    (name === "viewBox" && old.dataset.myView !== undefined);
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !isMine(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value && !isMine(name)) old.setAttribute(name, value);
  }
}

function children(old, fresh) {
  const keyed = new Map([...old.children].filter((child) => child.id).map((child) => [child.id, child]));
  let at = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const known = wanted.id ? keyed.get(wanted.id) : undefined;
    if (known) {
      if (known === at) at = at.nextSibling;
      else old.insertBefore(known, at);
      morph(known, wanted);
    } else if (at && !at.id && !wanted.id && at.nodeName === wanted.nodeName) {
      const same = at;
      at = at.nextSibling;
      morph(same, wanted);
    } else {
      old.insertBefore(document.importNode(wanted, true), at);
    }
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    // A form the user is typing in is not removed.
    if (gone.contains(document.activeElement) && gone.querySelector?.("input, textarea, select")) gone.dataset.myGone = "";
    else gone.remove();
  }
}
