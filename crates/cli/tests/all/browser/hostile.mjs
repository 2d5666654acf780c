// Text of agents and tools is displayed and never executed, wherever it occurs.

import { begin, end, equal, executions, fault, holds, launch, part, repair, rutter, tab, write } from "./page.mjs";

const PAYLOADS = [
  `<script>window.__xss = 1</script>`,
  `"><img src=x onerror="window.__xss = 2">`,
  `'-window.__xss=3-'`,
  `<svg/onload=window.__xss=4>`,
  `</textarea></title><iframe srcdoc="<script>parent.__xss=5</script>">`,
  `javascript:window.__xss=6`,
];

await launch();
const window = await tab();
const { page } = window;

await part("foreign names and texts are displayed as they are, and never executed", async () => {
  const made = PAYLOADS.map((payload, number) => {
    const plan = {
      name: payload,
      goal: `goal ${payload}`,
      description: payload,
      tags: [payload.slice(0, 60)],
      steps: [{ id: `s${number}`, name: payload, description: payload, tool: "mail.confirm", parameters: { order: payload, text: payload }, cancellable: "irreversible" }],
    };
    fault("mail.confirm", `it says ${payload}`);
    return begin(write(`hostile-${number}.json`, JSON.stringify(plan)));
  });
  repair("mail.confirm");
  const pages = ["/", "/executions", "/approvals", "/journal", "/tools", "/tools/mail.confirm", "/plans", "/analytics", "/alerts"];
  for (const path of [...pages, ...made.map((execution) => `/executions/${execution}`)]) {
    await window.go(path);
    await page.waitForLoadState("load");
    equal(await page.evaluate(() => window.__xss), undefined, `${path}: what ran`);
    equal(await page.locator("main script, main iframe, main img").count(), 0, `${path}: what was made of it`);
  }
  await window.go("/executions");
  holds((await page.locator("#rows").innerText()).includes("<script>window.__xss = 1</script>"), "it is displayed as text");
  window.calm();
});

await part("an address cannot put words on a page", async () => {
  await window.go(`/?said=${encodeURIComponent("<script>window.__xss = 7</script>")}`);
  equal(await page.locator(".said").count(), 0, "what was said");
  await window.go(`/executions?text=${encodeURIComponent(`"><script>window.__xss = 8</script>`)}`);
  equal(await page.evaluate(() => window.__xss), undefined, "what ran");
  window.calm();
});

await part("a form from elsewhere does nothing", async () => {
  await window.go("/");
  window.expect(403);
  const status = await page.evaluate(async (execution) => {
    const body = new URLSearchParams({ csrf: "0".repeat(64), say: "cancel", reason: "from elsewhere" });
    return (await fetch(`/executions/${execution}/answer`, { method: "POST", body })).status;
  }, executions.running);
  equal(status, 403, "the answer");
  holds(!rutter("journal", "show", executions.running, "--json").includes("from elsewhere"), "nothing is recorded");
  window.calm();
});

await part("pages cannot be framed or cached", async () => {
  const response = await window.go("/executions");
  const policy = response.headers()["content-security-policy"];
  for (const word of ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"]) {
    holds(policy.includes(word), `${word} is not in ${policy}`);
  }
  equal(response.headers()["cache-control"], "no-store", "what may be cached");
  equal(await page.locator("[style], style, script:not([src])").count(), 0, "what is written into the page");
  window.calm();
});

await window.close();
await end();
