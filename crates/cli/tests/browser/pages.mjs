// Every page: it loads, nothing goes wrong in it, everybody can use it, in the light, in the dark, on a telephone.

import { executions, fits, judge, launch, part, tab, end, equal, holds } from "./page.mjs";

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
  "/settings",
  "/help",
];

await launch();

for (const theme of ["light", "dark"]) {
  await part(`every page can be used by everybody, ${theme}`, async () => {
    const window = await tab({ theme });
    const found = [];
    for (const path of PAGES) {
      await window.go(path);
      try {
        window.calm();
        await judge(window);
      } catch (error) {
        found.push(`${path}: ${error.message}`);
      }
    }
    holds(found.length === 0, found.join("\n"));
    await window.close();
  });
}

await part("every page fits a telephone", async () => {
  const window = await tab({ width: 360, height: 740 });
  const found = [];
  for (const path of PAGES) {
    await window.go(path);
    await fits(window).catch((error) => found.push(`${path}: ${error.message}`));
  }
  holds(found.length === 0, found.join("\n"));
  await window.close();
});

await part("an address without a page is told in a page", async () => {
  const window = await tab();
  window.expect(404);
  const response = await window.go("/no/such/page");
  equal(response.status(), 404, "the status");
  equal(await window.text("h1"), "Not found", "the headline");
  await judge(window);
  await window.close();
});

await end();
