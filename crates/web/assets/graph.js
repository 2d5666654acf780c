// Pan and zoom of a graph: drag, wheel with a modifier, buttons with data-zoom, arrow keys from step to step.
// The graph is an <svg> with a viewBox inside an element with data-graph.

const ZOOM_MAX = 8;

export function start() {
  for (const frame of document.querySelectorAll("[data-graph]")) hold(frame);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-zoom]");
    if (!button) return;
    const by = { in: 1.25, out: 0.8 }[button.dataset.zoom];
    if (by) zoom(by);
    else fit();
  });
}

/** Says whether there is a picture. */
export function fit() {
  const svg = picture();
  if (!svg) return false;
  if (svg.whole) svg.setAttribute("viewBox", svg.whole.join(" "));
  delete svg.dataset.myView;
  return true;
}

export function zoom(by) {
  const svg = picture();
  if (!svg) return false;
  const [x, y, width, height] = view(svg);
  zoomAt(svg, by, x + width / 2, y + height / 2);
  return true;
}

function picture() {
  return [...document.querySelectorAll("[data-graph] > svg")].find((svg) => svg.checkVisibility());
}

function view(svg) {
  const box = svg.getAttribute("viewBox").split(/[\s,]+/).map(Number);
  svg.whole ??= box;
  return box;
}

function look(svg, box) {
  svg.setAttribute("viewBox", box.map((number) => Math.round(number * 100) / 100).join(" "));
  svg.dataset.myView = "";
}

function zoomAt(svg, by, x, y) {
  const [left, top, width, height] = view(svg);
  const scale = Math.min(Math.max(by, width / svg.whole[2] / 1.5), (width / svg.whole[2]) * ZOOM_MAX);
  look(svg, [x - (x - left) / scale, y - (y - top) / scale, width / scale, height / scale]);
}

function place(svg, event) {
  const point = new DOMPoint(event.clientX, event.clientY);
  return point.matrixTransform(svg.getScreenCTM().inverse());
}

function hold(frame) {
  const svg = () => frame.querySelector(":scope > svg");
  frame.addEventListener(
    "wheel",
    (event) => {
      if (!svg() || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      const { x, y } = place(svg(), event);
      zoomAt(svg(), event.deltaY < 0 ? 1.12 : 0.89, x, y);
    },
    { passive: false },
  );
  let grip;
  frame.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !svg() || event.pointerType === "touch") return;
    grip = { at: place(svg(), event), moved: false };
  });
  frame.addEventListener("pointermove", (event) => {
    if (!grip || !svg()) return;
    const now = place(svg(), event);
    const [left, top, width, height] = view(svg());
    const [dx, dy] = [now.x - grip.at.x, now.y - grip.at.y];
    if (!grip.moved && Math.hypot(dx, dy) < width / 200) return;
    if (!grip.moved) frame.setPointerCapture(event.pointerId);
    grip.moved = true;
    look(svg(), [left - dx, top - dy, width, height]);
  });
  const release = (event) => {
    if (grip?.moved) frame.addEventListener("click", (click) => click.preventDefault(), { capture: true, once: true });
    if (grip?.moved && event.type === "pointerup") setTimeout(() => (grip = undefined));
    else grip = undefined;
  };
  frame.addEventListener("pointerup", release);
  frame.addEventListener("pointercancel", release);
  frame.addEventListener("keydown", (event) => {
    const direction = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    const from = event.target.closest("[data-step]");
    if (!direction || !from) return;
    const to = nearest(frame, from, direction);
    if (!to) return;
    event.preventDefault();
    to.focus();
    reveal(svg(), to);
  });
}

/** The step one would expect there: near, and rather straight ahead than beside. */
function nearest(frame, from, [dx, dy]) {
  const middle = (element) => {
    const { x, y, width, height } = element.getBoundingClientRect();
    return [x + width / 2, y + height / 2];
  };
  const [x, y] = middle(from);
  let best;
  for (const node of frame.querySelectorAll("[data-step]")) {
    const [nodeX, nodeY] = middle(node);
    const ahead = (nodeX - x) * dx + (nodeY - y) * dy;
    const beside = Math.abs((nodeX - x) * dy) + Math.abs((nodeY - y) * dx);
    const cost = ahead + 2 * beside;
    if (node !== from && ahead > 1 && (!best || cost < best.cost)) best = { node, cost };
  }
  return best?.node;
}

function reveal(svg, node) {
  const [outer, inner] = [svg.getBoundingClientRect(), node.getBoundingClientRect()];
  const inside = inner.left >= outer.left && inner.right <= outer.right && inner.top >= outer.top && inner.bottom <= outer.bottom;
  if (inside) return;
  const [left, top, width, height] = view(svg);
  const scale = width / outer.width;
  const dx = (inner.left + inner.width / 2 - outer.left - outer.width / 2) * scale;
  const dy = (inner.top + inner.height / 2 - outer.top - outer.height / 2) * scale;
  look(svg, [left + dx, top + dy, width, height]);
}
