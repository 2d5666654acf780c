// Pages update live, without being reloaded and without disturbing their user.

import { begin, end, equal, executions, holds, launch, leave, look, openGate, part, rutter, shutGate, tab, until } from "./page.mjs";

await launch();

/** A page that says when it is loaded again. */
async function still(path) {
  const window = await tab();
  await window.go(path);
  await window.page.locator("#live[data-state=live]").waitFor();
  let navigations = 0;
  window.page.on("framenavigated", () => (navigations += 1));
  await window.page.evaluate(() => (window.__mark = "here"));
  window.stood = async () => {
    equal(navigations, 0, "how often the page was loaded again");
    equal(await window.page.evaluate(() => window.__mark), "here", "what the page remembers");
  };
  return window;
}

await part("an execution updates live: status, graph, text", async () => {
  shutGate();
  const execution = await leave("harbour.yaml");
  const window = await still(`/executions/${execution}`);
  await until("it runs", async () => (await window.text("#status")).includes("running"));
  const [graph, now] = [await window.page.locator("#picture").innerHTML(), await window.text("#now")];
  openGate();
  await until("its status has changed", async () => (await window.text("#status")).includes("completed"));
  await until("its graph has changed", async () => (await window.page.locator("#picture").innerHTML()) !== graph);
  await until("its text has changed", async () => (await window.text("#now")) !== now);
  equal(await window.page.locator("#offers :is(button, a)", { hasText: "Pause" }).count(), 0, "what can be done no more");
  await window.stood();
  await window.close();
});

await part("an execution that is started elsewhere is announced in the list", async () => {
  const window = await still("/executions");
  begin("letter.yaml");
  await window.page.locator("#pill:not([hidden])").waitFor();
  equal(await window.text("#pill"), "1 new", "what is announced");
  await window.stood();
  await window.press("#pill");
  holds((await window.text("#rows")).includes("letter"), "it is in the list");
  await window.close();
});

await part("the numbers of the overview update", async () => {
  const window = await still("/");
  const before = await window.text("#recent");
  begin("letter.yaml");
  await until("the newest execution is displayed", async () => (await window.text("#recent")) !== before);
  await window.stood();
  await window.close();
});

await part("a question that is answered elsewhere disappears", async () => {
  const execution = begin("parcel.yaml");
  const window = await still("/approvals");
  const card = window.page.locator(`section.question:has(a[href="/executions/${execution}"])`);
  await card.waitFor();
  rutter("exec", "approve", execution, "--reason", "from the terminal");
  await card.waitFor({ state: "detached" });
  await window.stood();
  await window.close();
});

await part("typed text is not lost", async () => {
  const window = await still(`/executions/${executions.approval}`);
  const field = window.page.locator("#questions input[name=reason]").first();
  await field.fill("half a sentence");
  await window.page.locator("details summary", { hasText: "In a terminal" }).last().click();
  rutter("exec", "pause", executions.approval, "--reason", "while somebody types");
  await until("the page has updated", async () => (await window.text("#status")).includes("paused"));
  equal(await field.inputValue(), "half a sentence", "what was typed");
  rutter("exec", "resume", executions.approval, "--reason", "it was enough");
  await until("the page has updated again", async () => !(await window.text("#status")).includes("paused"));
  equal(await field.inputValue(), "half a sentence", "what was typed");
  await window.stood();
  await window.close();
});

await part("the journal grows at its top, and can be paused", async () => {
  const window = await still("/journal");
  const first = () => window.page.locator("#rows tr").first().getAttribute("id");
  const before = await first();
  begin("letter.yaml");
  await until("it has grown", async () => (await first()) !== before);
  await window.page.locator("[data-pause]").click();
  equal(await window.text("#live"), "paused", "what the page says");
  const paused = await first();
  begin("letter.yaml");
  // Another live page has received it by then.
  await until("it is recorded", () => rutter("journal", "tail", "--json", "-n", "1").length > 0);
  equal(await first(), paused, "the newest entry");
  await window.page.locator("[data-pause]").click();
  await until("it continues", async () => (await first()) !== paused);
  await window.stood();
  await window.close();
});

await part("a lost connection is reported, and comes back", async () => {
  const window = await still("/");
  await window.context.setOffline(true);
  // Open streams survive going offline; a page that is hidden and visible again opens a new one.
  await window.page.evaluate(() => dispatchEvent(new Event("pagehide")));
  await window.page.evaluate(() => dispatchEvent(Object.assign(new Event("pageshow"), { persisted: true })));
  await until("it is reported", async () => (await window.text("#live")) !== "live");
  await window.context.setOffline(false);
  await until("it comes back", async () => (await window.text("#live")) === "live");
  await window.stood();
  await window.context.close();
});

await part("an unchanged page stays as it is", async () => {
  const window = await still(`/executions/${executions.doubt}`);
  const before = await window.page.locator("main").innerHTML();
  begin("letter.yaml");
  equal(look(executions.doubt).status, "waiting", "the execution");
  const words = (html) => html.replaceAll(/<time[^>]*>[^<]*<\/time>/g, "");
  equal(words(await window.page.locator("main").innerHTML()), words(before), "the page");
  await window.close();
});

await end();
