// Every button works: pressed on the page, verified in the journal or through the API.

import { createServer } from "node:http";
import { address, begin, end, equal, executions, fault, holds, launch, look, part, repair, rutter, tab, until } from "./page.mjs";

await launch();
const window = await tab();
const { page } = window;

const status = (execution) => look(execution).status;
const becomes = (execution, wanted) => until(`${execution} becomes ${wanted}`, () => status(execution) === wanted);
const card = (execution) => `section.question:has(a[href="/executions/${execution}"])`;
const kinds = (execution) => rutter("journal", "show", execution, "--json");
const said = async (text) => holds((await window.text(".said")).includes(text), `the page does not say ${text}`);

await part("a call is approved where the question is", async () => {
  await window.go("/approvals");
  const own = card(executions.approval);
  await page.locator(`${own} input[name=reason]`).fill("the parcel was looked at");
  await window.press(`${own} button[value=approve]`);
  await said("Approved");
  await becomes(executions.approval, "completed");
  holds(kinds(executions.approval).includes("the parcel was looked at"), "the reason is journaled");
  window.calm();
});

await part("a call is rejected where the question is", async () => {
  const execution = begin("parcel.yaml");
  await window.go("/approvals");
  await page.locator(`${card(execution)} input[name=reason]`).fill("the wrong parcel");
  await window.press(`${card(execution)} button[value=reject]`);
  await said("Rejected");
  await until("the rejection is recorded", () => kinds(execution).includes("the wrong parcel"));
  window.calm();
});

await part("a doubt is settled by a person", async () => {
  await window.go("/approvals");
  const own = card(executions.doubt);
  await page.locator(`${own} input[name=evidence]`).fill("the bank says so");
  await window.press(`${own} button[name=happened][value=true]`);
  await said("Settled");
  await becomes(executions.doubt, "completed");
  window.calm();
});

await part("a failed step is retried", async () => {
  await window.go("/approvals");
  const own = card(executions.failed);
  await page.locator(`${own} input[name=reason]`).first().fill("the mailbox is empty again");
  await window.press(`${own} button[value=retry]`);
  await said("recorded");
  await becomes(executions.failed, "completed");
  window.calm();
});

await part("a failed step is done by hand", async () => {
  fault("mail.confirm", "no mail today");
  const execution = begin("letter.yaml");
  repair("mail.confirm");
  await window.go("/approvals");
  const own = card(execution);
  await page.locator(`${own} summary`, { hasText: "by hand" }).click();
  await page.locator(`${own} details input[name=evidence]`).fill("I called the customer");
  await window.press(`${own} button[value=resolve]`);
  await becomes(execution, "completed");
  window.calm();
});

await part("several executions are paused, resumed and cancelled at once", async () => {
  for (const [button, wanted] of [["pause", "paused"], ["resume", "running"], ["cancel", "cancelled"]]) {
    await window.go("/executions");
    await page.locator(`#row-${executions.running} input[type=checkbox]`).check();
    equal(await window.text("[data-chosen]"), "1 selected:", "how many are selected");
    await window.press(`button[name=action][value=${button}]`);
    await page.locator("input[name=reason]").fill(`to see ${button}`);
    await window.press("main form button");
    await becomes(executions.running, wanted);
  }
  window.calm();
});

await part("a command without selected rows is reported", async () => {
  await window.go("/executions");
  await window.press("button[name=action][value=pause]");
  await said("Nothing was selected");
  window.calm();
});

await part("the journal is verified and signed", async () => {
  await window.go("/journal");
  await window.press("button:text-is('Sign checkpoint')");
  await said("signed");
  await window.press("button:text-is('Verify')");
  equal((await window.text(".headline .status")).split("\n").at(-1), "intact", "the verdict");
  await window.press("button:text-is('Verify again')");
  window.calm();
});

await part("the journal is filtered and exported", async () => {
  await window.go("/journal");
  await page.locator("#filters > summary").click();
  await page.locator("select[name=kind]").selectOption("execution_ended");
  await window.press("main form.filters button.main");
  const kinds = await page.locator("#rows .tag").allInnerTexts();
  holds(kinds.length > 0 && kinds.every((kind) => kind === "execution_ended"), `other kinds: ${kinds}`);
  for (const [name, begins] of [["NDJSON", "{"], ["CSV", "at,"]]) {
    const href = await page.locator("a", { hasText: name }).first().getAttribute("href");
    const text = await page.evaluate(async (href) => (await fetch(href)).text(), href);
    holds(text.includes("execution_ended"), `${name} has no entries: ${text.slice(0, 200)}`);
    if (name === "NDJSON") holds(text.startsWith(begins), `${name}: ${text.slice(0, 80)}`);
  }
  window.calm();
});

await part("the tools of servers are listed", async () => {
  await window.go("/tools");
  await window.press("button:text-is('Refresh')");
  await said("refreshed");
  holds((await window.text("#server-payments")).includes("payments.charge"), "a server lists its tools");
  holds((await window.text("#server-gone")).includes("down"), "a missing server is down");
  window.calm();
});

await part("tools are found by words", async () => {
  await window.go("/tools");
  await page.locator("main input[name=text]").fill("parcel");
  await window.press("main form.filters button.main");
  const names = await page.locator("main [data-open]").allInnerTexts();
  equal(names[0], "carrier.ship", "the best tool");
  window.calm();
});

await part("the breaker of a failed server is reset", async () => {
  await window.go("/tools");
  const server = "#server-harbourmaster";
  holds((await window.text(server)).includes("open"), "its breaker is open");
  await window.press(`${server} button:text-is('Reset')`);
  await said("reset");
  holds((await window.text(server)).includes("closed"), "its breaker is closed");
  equal(await page.locator(`${server} button`).count(), 0, "what can be reset");
  window.calm();
});

await part("a tool that only reads is tried out at once", async () => {
  await window.go("/tools/payments.find");
  await page.locator("#try input[name='field.reference']").fill("no such charge");
  await page.locator("#try input[name=reason]").first().fill("to see what it says");
  window.expect(404);
  await page.locator("#try button:text-is('Call')").first().click();
  await page.waitForURL(/\/executions\/exec_/);
  const execution = page.url().match(/exec_\w+/)[0];
  await becomes(execution, "completed");
  window.calm();
});

await part("a tool with effects is tried out after a confirmation", async () => {
  await window.go("/tools/inventory.reserve");
  await page.locator("#try summary", { hasText: "JSON" }).click();
  await page.locator("#try textarea[name=parameters]").fill('{"order": "A-9", "sku": "buoy"}');
  await page.locator("#try details input[name=reason]").fill("to see it reserved");
  await window.press("#try details button:text-is('Call')");
  equal(await window.text("h1"), "Call inventory.reserve?", "the question");
  await page.locator("main button.risky").click();
  await page.waitForURL(/\/executions\/exec_/);
  await becomes(page.url().match(/exec_\w+/)[0], "completed");
  window.calm();
});

await part("a key is created, used and revoked", async () => {
  await window.go("/settings");
  await page.locator("#keys input[name=name]").fill("reader");
  await window.press("#keys button:text-is('Create key')");
  const secret = await window.text("#secret");
  const ask = async () => (await fetch(`${address}/api/v1/executions`, { headers: { authorization: `Bearer ${secret}` } })).status;
  equal(await ask(), 200, "the key's access");
  await window.press("main a.main");
  holds(!(await page.content()).includes(secret), "the key is not displayed again");
  await window.press("#keys tr:has-text('reader') button");
  await said("Revoked");
  equal(await ask(), 401, "a revoked key's access");
  window.calm();
});

await part("another browser is signed out", async () => {
  const other = await tab();
  await window.go("/settings");
  equal(await page.locator("#sessions tbody tr").count(), 2, "how many browsers there are");
  await window.press("#sessions tr:not(:has-text('this browser')) button");
  await said("Signed out");
  await other.go("/");
  holds(other.page.url().includes("/enter"), "it has to sign in again");
  await other.close();
  window.calm();
});

await part("numbers are displayed by day, plan and tool, and exported", async () => {
  await window.go("/analytics");
  await until("everything is counted", async () => {
    await page.reload();
    return (await page.locator("#plan-times").count()) === 1;
  });
  await page.locator("select[name=by]").selectOption("tool");
  await window.press("main form.filters button.main");
  holds((await window.text("main table.wide tbody")).includes("inventory.reserve"), "the table of tools");
  await page.locator("#throughput summary").click();
  holds(await page.locator("#throughput table").isVisible(), "the numbers of a picture");
  const href = await page.locator("a:text-is('CSV')").last().getAttribute("href");
  const csv = await page.evaluate(async (href) => (await fetch(href)).text(), href);
  holds(csv.startsWith("tool,opened,") && csv.includes("inventory.reserve"), csv.slice(0, 200));
  await window.press("nav.chips a:text-is('Today')");
  await window.go("/analytics?from=nonsense");
  holds((await window.text("[role=alert]")).includes("not a day"), "an invalid day is reported");
  window.calm();
});

await part("a webhook is created, tested, changed and removed", async () => {
  const heard = [];
  let answer = 200;
  const receiver = createServer((request, response) => {
    let body = "";
    request.on("data", (piece) => (body += piece));
    request.on("end", () => {
      heard.push({ headers: request.headers, body: JSON.parse(body) });
      response.writeHead(answer).end("taken");
    });
  });
  await new Promise((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  try {
    await window.go("/alerts");
    await page.locator("#new-webhook").evaluate((details) => (details.open = true));
    await page.locator("#new-webhook input[name=url]").fill(`http://127.0.0.1:${receiver.address().port}/hook`);
    await page.locator("#new-webhook input[name=events]").fill("execution_*");
    await window.press("#new-webhook button");
    const secret = await window.text("#secret");
    await window.press("main a.main");
    await window.press("button[value=test]");
    holds((await window.text("#tested")).includes("was delivered"), "the test was delivered");
    equal(heard.length, 1, "how many messages the receiver got");
    holds(heard[0].headers["webhook-signature"]?.startsWith("v1,"), "the message is signed");
    begin("order.yaml", "--input", "order=A-8", "--input", "sku=sail", "--input", "amount=3");
    await until("events arrive", () => heard.some((one) => JSON.stringify(one.body).includes("execution_ended")));
    await until("the page lists it", async () => {
      await page.reload();
      return (await window.text("#delivery-list")).includes("delivered");
    });
    const before = heard.length;
    await window.press("#delivery-list button");
    await said("sent again");
    await until("it arrives again", () => heard.length > before);
    await page.locator("#delivery-list a[data-open]").first().click();
    await page.waitForURL(/deliveries/);
    holds((await window.text("main pre")).includes("specversion"), "what was sent");
    await page.goBack();
    await window.press("button[value=rotate]");
    holds((await window.text("#secret")) !== secret, "another secret");
    await window.press("main a.main");
    await window.press("button[value=off]");
    equal((await window.text(".headline .status")).split("\n").at(-1), "disabled", "its status");
    await window.press("button[value=on]");
    await page.locator("input[name=description]").fill("for the office");
    await window.press("button[value=save]");
    await said("Saved");
    await page.locator("summary", { hasText: "Remove webhook" }).click();
    await window.press("button[value=remove]");
    await said("Removed");
    holds(!(await page.content()).includes(`127.0.0.1:${receiver.address().port}`), "it is gone");
  } finally {
    receiver.close();
  }
  window.calm();
});

await part("rules are changed, disabled and enabled", async () => {
  const rule = "#rule-waiting_for_person";
  await window.go("/alerts");
  await page.locator(`${rule} summary`).click();
  await page.locator(`${rule} input[name=threshold]`).fill("0");
  await page.locator(`${rule} select[name=severity]`).selectOption("critical");
  await window.press(`${rule} button[value=save]`);
  await said("Saved");
  holds((await window.text(rule)).includes("critical"), "its severity has changed");
  await window.press(`${rule} button[value=off]`);
  holds((await window.text(rule)).includes("disabled"), "it is disabled");
  await window.press(`${rule} button[value=on]`);
  window.calm();
});

await part("an alert fires, is acknowledged, silenced and resolved", async () => {
  const execution = begin("parcel.yaml");
  const row = `#firing li:has(a[href="/executions/${execution}"])`;
  await until("it fires", async () => {
    await window.go("/alerts");
    return page.locator(row).count();
  });
  await window.press(`${row} button:text-is('Acknowledge')`);
  await said("Acknowledged");
  holds((await window.text(row)).includes("acknowledged by operator"), "who acknowledged it");
  await window.press(`${row} button:text-is('Silence for 1 h')`);
  await said("Silenced");
  await window.press("#silences button:text-is('End')");
  await said("Removed");
  rutter("exec", "approve", execution, "--reason", "no alert any more");
  await until("it is resolved", async () => {
    await page.reload();
    return page.locator(`#history li:has(a[href="/executions/${execution}"])`).count();
  });
  window.calm();
});

await part("a built-in rule is reset to its default, others are added and removed", async () => {
  const rule = "#rule-waiting_for_person";
  await window.go("/alerts");
  await page.locator(`${rule} summary`).click();
  await window.press(`${rule} button:text-is('Reset to default')`);
  await said("Removed");
  holds((await window.text(rule)).includes("info"), "its severity is the default again");
  await page.locator("#new-rule summary").click();
  await page.locator("#new-rule select[name=kind]").selectOption("dead_letters");
  await page.locator("#new-rule input[name=threshold]").fill("10");
  await page.locator("#new-rule input[name=description]").fill("many deliveries are dead");
  await window.press("#new-rule button.main");
  const own = "#rules li:has-text('many deliveries are dead')";
  holds((await window.text(own)).includes("at least 10"), "it is there");
  await page.locator(`${own} summary`).click();
  await window.press(`${own} button:text-is('Remove')`);
  equal(await page.locator(own).count(), 0, "it is gone");
  window.calm();
});

await part("a silence is created and ended", async () => {
  await window.go("/alerts");
  await page.locator("#new-silence summary").click();
  await page.locator("#new-silence select[name=rule]").selectOption("disk_low");
  await page.locator("#new-silence input[name=reason]").fill("a new disk is on its way");
  await window.press("#new-silence button.main");
  await said("Silenced");
  await window.press("#silences li:has-text('a new disk') button");
  await said("Removed");
  window.calm();
});

await part("a private address is refused for a webhook", async () => {
  await window.go("/alerts");
  await page.locator("#new-webhook").evaluate((details) => (details.open = true));
  await page.locator("#new-webhook input[name=url]").fill("http://169.254.169.254/latest");
  window.expect(400);
  await page.locator("#new-webhook button").click();
  await page.waitForSelector("h1:text('Bad request')");
  window.calm();
});

await part("the theme is changed and remembered", async () => {
  await window.go("/");
  for (const theme of ["dark", "light", "auto"]) {
    await page.locator("[data-theme-button]").click();
    equal(await page.locator("html").getAttribute("data-theme"), theme, "the theme now");
    await page.reload();
    equal(await page.locator("html").getAttribute("data-theme"), theme, "the theme of the next page");
  }
  window.calm();
});

await part("after signing out one has to sign in again", async () => {
  await window.go("/");
  await window.press("form[action='/leave'] button");
  holds(page.url().includes("/enter"), "the sign-in page");
  await window.go("/executions");
  holds(page.url().includes("/enter"), "the sign-in page again");
  window.calm();
});

await window.context.close();
await end();
