// Everything works without scripts: links, forms, and filters in the address.

import { end, equal, executions, holds, launch, look, part, tab, until } from "./page.mjs";

await launch();
const window = await tab({ scripts: false });
const { page } = window;

await part("an execution is approved without scripts", async () => {
  await window.go("/");
  await window.press("#attention a:has-text('parcel')");
  await window.go("/approvals");
  const own = `section.question:has(a[href="/executions/${executions.approval}"])`;
  await page.locator(`${own} input[name=reason]`).fill("looked at without scripts");
  await window.press(`${own} button[value=approve]`);
  holds((await window.text(".said")).includes("Approved"), "the notice");
  await until("it continues", () => look(executions.approval).status === "completed");
  window.calm();
});

await part("executions are filtered without scripts", async () => {
  await window.go("/executions");
  await page.locator("summary", { hasText: "Filter" }).click();
  await page.locator("main input[name=text]").fill("harbour");
  await window.press("main form button.main");
  equal(await page.locator("tr[data-row]").count(), 1, "how many are found");
  holds(page.url().includes("text=harbour"), "the filter is in the address");
  window.calm();
});

await part("the theme is chosen without scripts", async () => {
  await window.go("/journal");
  await window.press("[data-theme-button]");
  equal(await page.locator("html").getAttribute("data-theme"), "dark", "the theme");
  equal(new URL(page.url()).pathname, "/journal", "the page");
  window.calm();
});

await part("help is a page without scripts", async () => {
  await window.go("/");
  await window.press("a[data-help]");
  equal(await window.text("h1"), "Help", "the headline");
  window.calm();
});

await part("nothing is displayed that needs scripts", async () => {
  for (const path of ["/", "/executions", "/journal", "/tools", "/settings"]) {
    await window.go(path);
    equal(await page.locator(".copy:visible, .scripted:visible").count(), 0, `${path}: elements without function`);
  }
  window.calm();
});

await window.close();
await end();
