// Every page: it loads without errors, is accessible, in light and dark mode, on a phone.

import { begin, end, equal, executions, fits, holds, judge, launch, part, tab, until } from "./page.mjs";

const execution = (name) => `/executions/${executions[name]}`;
const PAGES = [
  "/",
  "/executions",
  "/executions?status=failed&asking=yes&text=order",
  "/approvals",
  "/journal",
  "/tools",
  "/tools/payments.find",
  "/tools/inventory.reserve",
  "/analytics",
  "/analytics?by=tool&from=1h",
  "/alerts",
  "/alerts/deliveries/1",
  "/settings",
  "/plans",
  ...["running", "approval", "failed", "doubt", "compensated", "completed"].map(execution),
  ...["timeline", "events", "context", "compensation"].map((tab) => `${execution("compensated")}?tab=${tab}`),
  `${execution("completed")}?step=charge`,
  `${execution("running")}/confirm?act=cancel`,
  "/help",
];

await launch();

await part("every page has content", async () => {
  const window = await tab();
  const { page } = window;
  await window.go("/alerts");
  await page.locator("#new-webhook input[name=url]").fill("http://127.0.0.1:9/nobody");
  await window.press("#new-webhook button");
  await window.press("main a.main");
  PAGES.push(new URL(page.url()).pathname);
  await window.go("/alerts");
  await page.locator("#new-silence summary").click();
  await page.locator("#new-silence input[name=reason]").fill("to have one");
  await page.locator("#new-silence select[name=rule]").selectOption("disk_low");
  await window.press("#new-silence button");
  await window.go("/settings");
  await page.locator("#keys input[name=name]").fill("reader");
  await window.press("#keys button:text-is('Create key')");
  await judge(window);
  begin("letter.yaml");
  await until("an alert fires and a delivery is tried", async () => {
    await window.go("/alerts");
    return (await page.locator("#firing li").count()) && (await page.locator("#delivery-list tr").count());
  });
  await window.go("/plans");
  const plan = await page.locator("tr[data-row] a[data-open]").first().getAttribute("href");
  PAGES.push(plan, ...["preview", "checks", "versions", "executions", "source"].map((tab) => `${plan}?tab=${tab}`));
  await window.close();
});

for (const theme of ["light", "dark"]) {
  await part(`every page is accessible, ${theme}`, async () => {
    const window = await tab({ theme });
    const found = [];
    for (const path of PAGES) {
      await window.go(path);
      try {
        window.calm();
        await judge(window, { onlyColours: theme === "dark" });
      } catch (error) {
        found.push(`${path}: ${error.message}`);
      }
    }
    holds(found.length === 0, found.join("\n"));
    await window.close();
  });
}

await part("every page fits a phone", async () => {
  const window = await tab({ width: 360, height: 740 });
  const found = [];
  for (const path of PAGES) {
    await window.go(path);
    await fits(window).catch((error) => found.push(`${path}: ${error.message}`));
  }
  holds(found.length === 0, found.join("\n"));
  await window.close();
});

await part("an unknown address gets a page", async () => {
  const window = await tab();
  window.expect(404);
  const response = await window.go("/no/such/page");
  equal(response.status(), 404, "the status");
  equal(await window.text("h1"), "Not found", "the headline");
  await judge(window);
  await window.close();
});

await end();
