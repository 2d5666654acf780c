// Plans and executions: every tab, every button, the graph by hand and by keyboard.

import { begin, end, equal, executions, fault, holds, launch, leave, look, openGate, part, repair, rutter, shutGate, tab, until } from "./page.mjs";

await launch();
const window = await tab();
const { page } = window;
const status = (execution) => look(execution).status;
const becomes = (execution, wanted) => until(`${execution} becomes ${wanted}`, () => status(execution) === wanted);
const said = async (text) => holds((await window.text(".said")).includes(text), `the page does not say ${text}`);
const here = () => page.url().match(/exec_\w+/)[0];

/** Opens the dialog of a button, gives a reason and confirms. */
async function act(name) {
  await page.locator(`#offers a[data-dialog=act-${name}]`).click();
  const dialog = page.locator(`#act-${name}`);
  await dialog.waitFor();
  await dialog.locator("input[name=reason]").fill(`to see ${name}`);
  await window.press(`#act-${name} .actions button`);
}

await part("a plan is found, viewed in every tab and started", async () => {
  await window.go("/plans");
  await page.locator("main input[name=text]").fill("parcel");
  await window.press("main form.filters button.main");
  await window.press("main tr[data-row] a[data-open]");
  equal(await window.text("h1"), "parcel", "the plan");
  const tabs = await page.locator(".tabs a").allInnerTexts();
  for (const label of tabs) {
    await window.press(`.tabs a:text-is('${label}')`);
    equal(await window.text(".tabs a[aria-current]"), label, "the open tab");
  }
  holds(tabs.length >= 5, `tabs: ${tabs}`);
  await page.locator("#run button.main").click();
  await page.waitForURL(/\/executions\/exec_/);
  await becomes(here(), "waiting");
  window.calm();
});

await part("a plan with inputs is started with those of the form", async () => {
  await window.go("/plans?text=order");
  await window.press("main tr[data-row]:has(a:text-is('order')) a[data-open]");
  for (const [name, value] of [["order", "A-11"], ["sku", "anchor"], ["amount", "12"]]) {
    await page.locator(`#run [name='field.${name}']`).first().fill(value);
  }
  await page.locator("#run button.main").click();
  await page.waitForURL(/\/executions\/exec_/);
  await becomes(here(), "completed");
  await window.go(`/executions/${here()}?step=reserve`);
  holds((await page.locator("#panel").textContent()).includes("anchor"), "the call was made with the input");
  window.calm();
});

await part("every tab of an execution shows something", async () => {
  await window.go(`/executions/${executions.compensated}`);
  const tabs = await page.locator(".tabs a").allInnerTexts();
  equal(tabs.length, 5, `how many tabs: ${tabs}`);
  for (const [number, label] of tabs.entries()) {
    await page.keyboard.press(String(number + 1));
    await until(`${label} is open`, async () => (await page.locator(".tabs a[aria-current]").innerText().catch(() => "")) === label);
    holds((await page.locator("main .panel").first().innerText()).length > 0, `${label} is empty`);
  }
  window.calm();
});

await part("a step is chosen in the graph, with its details beside it", async () => {
  await window.go(`/executions/${executions.completed}`);
  await page.locator("#picture a").nth(1).click();
  await page.locator("#panel").waitFor();
  const first = await window.text("#panel-title");
  await page.keyboard.press("]");
  await until("the next step is chosen", async () => (await page.locator("#panel-title").innerText().catch(() => first)) !== first);
  await page.keyboard.press("[");
  await until("the step before is chosen again", async () => (await page.locator("#panel-title").innerText().catch(() => "")) === first);
  await window.press("#panel a[aria-label=Close]");
  equal(await page.locator("#panel").count(), 0, "how many steps are chosen");
  window.calm();
});

await part("the graph is zoomed and fitted", async () => {
  await window.go(`/executions/${executions.completed}`);
  const box = () => page.locator("#picture > svg").getAttribute("viewBox");
  const whole = await box();
  await page.locator("[data-zoom=in]").click();
  holds((await box()) !== whole, "it is nearer");
  await page.locator("[data-zoom=fit]").click();
  equal(await box(), whole, "it is whole");
  await page.keyboard.press("+");
  holds((await box()) !== whole, "it is nearer by key");
  await page.keyboard.press("f");
  equal(await box(), whole, "it is whole by key");
  await page.keyboard.press("-");
  await page.keyboard.press("0");
  equal(await box(), whole, "it is whole by the other key");
  window.calm();
});

await part("arrow keys lead from step to step", async () => {
  await window.go(`/executions/${executions.completed}`);
  await page.locator("#picture a").first().focus();
  const focused = () => page.evaluate(() => document.activeElement.getAttribute("href"));
  const before = await focused();
  await page.keyboard.press("ArrowRight");
  const after = await focused();
  await page.keyboard.press("ArrowDown");
  holds((await focused()) !== before || after !== before, "another step has the focus");
  await page.keyboard.press("Enter");
  await page.locator("#panel").waitFor();
  window.calm();
});

await part("an execution is paused, resumed and cancelled on its page", async () => {
  await window.go(`/executions/${executions.running}`);
  await window.press("#offers button[value=pause]");
  await becomes(executions.running, "paused");
  await page.reload();
  await window.press("#offers button[value=resume]");
  await becomes(executions.running, "running");
  await page.reload();
  await page.locator("#offers a[data-dialog=act-cancel]").click();
  holds((await window.text("#act-cancel")).includes("inventory.release"), "what would be undone is displayed before");
  await page.keyboard.press("Escape");
  await page.locator("#act-cancel").waitFor({ state: "hidden" });
  await act("cancel");
  await said("Cancelling");
  await until("it has ended", () => ["cancelled", "compensated"].includes(status(executions.running)));
  window.calm();
});

await part("an execution is handed over and handed back", async () => {
  shutGate();
  const execution = await leave("harbour.yaml");
  await window.go(`/executions/${execution}`);
  await act("take_over");
  await until("an agent drives", () => look(execution).driver === "agent");
  await page.reload();
  await act("hand_back");
  await until("Rutter drives", () => look(execution).driver !== "agent");
  await page.reload();
  await act("kill");
  await until("it has ended", () => status(execution) !== "running");
  openGate();
  window.calm();
});

await part("an execution is undone, after a preview", async () => {
  await window.go(`/executions/${executions.completed}`);
  await page.locator("#offers a[data-dialog=act-undo]").click();
  const preview = await window.text("#act-undo");
  holds(preview.includes("payments.refund") && preview.indexOf("payments.refund") < preview.indexOf("inventory.release"), preview);
  await page.keyboard.press("Escape");
  await act("undo");
  await until("it is undone", () => ["compensated", "partial"].includes(status(executions.completed)));
  const calls = rutter("journal", "show", executions.completed, "--json");
  holds(calls.includes("payments.refund") && calls.includes("inventory.release"), "both were called");
  window.calm();
});

await part("questions are answered on the page of their execution", async () => {
  for (const [name, say] of [["skip", "skipped"], ["stop", "failed"]]) {
    fault("mail.confirm", "closed today");
    const execution = begin("letter.yaml");
    repair("mail.confirm");
    await window.go(`/executions/${execution}`);
    await page.locator("#questions input[name=reason]").first().fill(`to see ${name}`);
    await window.press(`#questions button[value=${name}]`);
    await until(`it is ${say}`, () => status(execution) !== "waiting");
    holds(rutter("journal", "show", execution, "--json").includes(`to see ${name}`), "the reason is journaled");
  }
  window.calm();
});

await part("events are filtered and displayed at three zooms", async () => {
  await window.go(`/executions/${executions.compensated}?tab=events`);
  const all = await page.locator("main .panel li, main .panel details").count();
  await page.locator("main input[name=text]").fill("kind:attempt_failed");
  await window.press("main form.filters button.main");
  const some = await page.locator("main .panel li, main .panel details").count();
  holds(some > 0 && some < all, `${some} of ${all}`);
  for (const label of await page.locator("main .chips a:not([download])").allInnerTexts()) {
    await window.press(`main .chips a:text-is('${label}')`);
  }
  window.calm();
});

await part("without scripts the confirmation is a page", async () => {
  const plain = await tab({ scripts: false });
  const execution = begin("order.yaml", "--input", "order=A-12", "--input", "sku=oar", "--input", "amount=1");
  await plain.go(`/executions/${execution}`);
  await plain.press("#offers a:has-text('Undo')");
  holds((await plain.text("main")).includes("payments.refund"), "what would be undone");
  await plain.page.locator("input[name=reason]").fill("without scripts");
  await plain.press("main .actions button");
  await until("it is undone", () => ["compensated", "partial"].includes(status(execution)));
  await plain.close();
});

await window.close();
await end();
