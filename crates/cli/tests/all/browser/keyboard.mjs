// Everything can be reached with the keyboard alone.

import { end, equal, executions, holds, launch, part, tab, until } from "./page.mjs";

await launch();
const window = await tab();
const { page } = window;
const press = async (...keys) => {
  for (const key of keys) await page.keyboard.press(key);
};
const focused = () => page.evaluate(() => document.activeElement?.closest("[id], [href], [name]")?.outerHTML.slice(0, 200) ?? "");

await part("g and a letter lead to every page", async () => {
  const pages = { o: "/", p: "/plans", e: "/executions", a: "/approvals", j: "/journal", t: "/tools", n: "/analytics", l: "/alerts", s: "/settings" };
  await window.go("/help");
  for (const [key, path] of Object.entries(pages)) {
    await press("g", key);
    await page.waitForURL((url) => url.pathname === path);
    await page.waitForLoadState("load");
  }
  window.calm();
});

await part("a question mark shows the keys, and Escape hides them", async () => {
  await window.go("/");
  await press("?");
  holds(await page.locator("#help").isVisible(), "the keys are shown");
  await press("Escape");
  holds(!(await page.locator("#help").isVisible()), "the keys are hidden");
  window.calm();
});

await part("a slash goes to the filter, and Escape leaves it", async () => {
  await window.go("/executions");
  await press("/");
  holds((await focused()).includes('name="text"'), `the filter has the focus: ${await focused()}`);
  await press("g", "e");
  equal(await page.locator("main input[name=text]").inputValue(), "ge", "what is typed is typed");
  await press("Escape");
  holds(!(await focused()).includes('name="text"'), "the filter has the focus no more");
  window.calm();
});

await part("rows are navigated, selected and opened", async () => {
  await window.go("/executions");
  const rows = await page.locator("tr[data-row]").count();
  holds(rows >= 6, "there are rows");
  await press("j", "j", "k");
  equal(await page.locator("tr[data-my-row]").count(), 1, "how many rows are marked");
  const marked = await page.locator("tr[data-my-row]").getAttribute("id");
  equal(marked, await page.locator("tr[data-row]").first().getAttribute("id"), "the marked row");
  await press("x");
  holds(await page.locator("tr[data-my-row] input[type=checkbox]").isChecked(), "the row is chosen");
  await press("Enter");
  await page.waitForURL(`**/executions/${marked.replace("row-", "")}`);
  window.calm();
});

await part("the palette leads to a page by its name", async () => {
  await window.go("/");
  await press("Control+k");
  holds(await page.locator("#palette").isVisible(), "the palette is open");
  await page.keyboard.type("sett");
  await press("Enter");
  await page.waitForURL("**/settings");
  window.calm();
});

await part("the palette finds executions", async () => {
  await window.go("/");
  await press("Control+k");
  await page.keyboard.type("harbour");
  const at = await until("it is found", async () => {
    const texts = await page.locator("#palette li").allInnerTexts();
    return texts.findIndex((text) => text.endsWith("execution")) + 1;
  });
  for (let step = 1; step < at; step += 1) await press("ArrowDown");
  await press("Enter");
  await page.waitForURL(`**/executions/${executions.running}`);
  window.calm();
});

await part("a full stop goes to the first action", async () => {
  await window.go("/journal");
  await press(".");
  equal(await page.evaluate(() => document.activeElement.textContent), "Verify", "what has the focus");
  window.calm();
});

await part("the first stop of Tab leads past the menu", async () => {
  await window.go("/executions");
  await press("Tab");
  equal(await page.evaluate(() => document.activeElement.textContent), "Skip to content", "what has the focus");
  await press("Enter");
  equal(await page.evaluate(() => location.hash), "#main", "where it leads");
  window.calm();
});

await part("the focus is visible", async () => {
  for (const path of ["/", "/executions", "/approvals", "/settings"]) {
    await window.go(path);
    for (let step = 0; step < 25; step += 1) {
      await press("Tab");
      const unseen = await page.evaluate(() => {
        const element = document.activeElement;
        if (!element || element === document.body) return null;
        const style = getComputedStyle(element);
        const box = element.getBoundingClientRect();
        const isShown = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
        return isShown && box.width > 0 ? null : element.outerHTML.slice(0, 160);
      });
      equal(unseen, null, `${path}: what has the focus`);
    }
  }
  window.calm();
});

await window.close();
await end();
