// Shared by the scenarios: a browser, tabs that record errors, and the command line.

import { execFileSync, spawn } from "node:child_process";
import { readFileSync, writeFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const { RUTTER, RUTTER_PLACE, RUTTER_ADDRESS, RUTTER_BROWSER } = process.env;
const require = createRequire(`${RUTTER_BROWSER}/`);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export const address = RUTTER_ADDRESS;
/** By their state: completed, compensated, failed, approval, doubt, outage, running. */
export const executions = JSON.parse(process.env.RUTTER_EXECUTIONS ?? "{}");

const PATIENCE_MS = 20_000;
let browser;
let failures = 0;

export async function launch() {
  browser = await chromium.launch({
    executablePath: process.env.RUTTER_CHROMIUM ?? "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/** Runs one part of a scenario and prints its result; the others continue. */
export async function part(name, play) {
  if (process.env.RUTTER_PART && !name.includes(process.env.RUTTER_PART)) return;
  try {
    await play();
    console.log(`ok ${name}`);
  } catch (error) {
    failures += 1;
    console.log(`not ok ${name}\n  ${String(error?.stack ?? error).replaceAll("\n", "\n  ")}`);
  }
}

export async function end() {
  await browser?.close();
  process.exitCode = failures ? 1 : 0;
}

const env = { HOME: RUTTER_PLACE, USER: "operator", PATH: "/usr/bin:/bin", LC_ALL: "C.UTF-8" };

/** The command line, in the same directory as the server. */
export function rutter(...words) {
  try {
    return execFileSync(RUTTER, words, { cwd: RUTTER_PLACE, env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  } catch (error) {
    // Executions that wait or failed have their own exit codes.
    if (error.status === 1 || error.status === 3) return error.stdout;
    throw new Error(`rutter ${words.join(" ")}: ${error.stderr}${error.stdout}`);
  }
}

/** An execution as the command line prints it. */
export const look = (execution) => JSON.parse(rutter("exec", "show", execution, "--json"));

/** Starts a plan of the fixture, or a given one, and returns its execution. */
export function begin(plan, ...words) {
  const said = rutter("run", plan, "--json", ...words);
  return said.match(/exec_\w+/)[0];
}

/** Starts a slow plan, leaves it to the server, and returns its execution. */
export async function leave(plan) {
  const newest = () => rutter("exec", "list", "--json", "-n", "1").match(/exec_\w+/)?.[0];
  const before = newest();
  const child = spawn(RUTTER, ["run", plan, "--json"], { cwd: RUTTER_PLACE, env, stdio: ["ignore", "ignore", "inherit"] });
  const execution = await until(`${plan} is started`, () => {
    const now = newest();
    return now !== before && now;
  });
  child.kill("SIGKILL");
  return execution;
}

export function write(name, text) {
  writeFileSync(join(RUTTER_PLACE, name), text);
  return name;
}

export const fault = (tool, why) => write(`tools/${tool}.fault`, why);
export const repair = (tool) => rmSync(join(RUTTER_PLACE, `tools/${tool}.fault`));
export const openGate = () => write("data/commands/gate/open", "");
export const shutGate = () => rmSync(join(RUTTER_PLACE, "data/commands/gate/open"), { force: true });

/** Waits until a condition holds, and returns its value. */
export async function until(what, holds) {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const value = await holds();
    if (value) return value;
    if (Date.now() > deadline) throw new Error(`it did not happen: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export function equal(found, expected, what) {
  if (found !== expected) throw new Error(`${what}: expected ${JSON.stringify(expected)}, found ${JSON.stringify(found)}`);
}

export function holds(condition, what) {
  if (!condition) throw new Error(what);
}

/** A signed-in browser window with a page. Its errors are recorded. */
export async function tab({ theme, scripts = true, width = 1280, height = 900, enter = true } = {}) {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: theme ?? "light",
    javaScriptEnabled: scripts,
    reducedMotion: "reduce",
  });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const wrong = [];
  const expected = new Set();
  page.on("pageerror", (error) => wrong.push(`error in a script: ${error.message}`));
  page.on("console", (message) => {
    // Failed responses are recorded below, with their status.
    const isAnswer = message.text().startsWith("Failed to load resource: the server responded");
    if (message.type() === "error" && !isAnswer) wrong.push(`console: ${message.text()}`);
  });
  page.on("requestfailed", (request) => {
    // Leaving a page ends its stream and its open requests.
    const why = request.failure()?.errorText ?? "";
    if (why !== "net::ERR_ABORTED") wrong.push(`${request.method()} ${request.url()}: ${why}`);
  });
  page.on("response", (response) => {
    const status = response.status();
    if (status >= 400 && !expected.has(status)) wrong.push(`${status} ${response.request().method()} ${response.url()}`);
  });
  const own = {
    page,
    context,
    go: async (path) => page.goto(new URL(path, address).href),
    /** An expected error status. */
    expect: (status) => expected.add(status),
    text: async (selector) => (await page.locator(selector).first().innerText()).trim(),
    /** Fails if there were errors since. */
    calm: () => {
      const found = wrong.splice(0);
      if (found.length) throw new Error(found.join("\n"));
    },
    /** Presses a button of a form and waits for the next page. */
    press: async (selector) => {
      const before = Date.now();
      const answered = page.waitForResponse((response) => response.request().isNavigationRequest() && response.status() < 300);
      await page.locator(selector).first().click();
      await answered;
      await page.waitForLoadState("domcontentloaded");
      return Date.now() - before;
    },
    close: async () => {
      await context.close();
      own.calm();
    },
  };
  if (enter) await let_in(own);
  return own;
}

async function let_in(tab) {
  await tab.go(rutter("open", "--print").trim());
  await tab.press("button");
}

/** Fails on serious accessibility findings; with `onlyColours`, on those about colours only. */
export async function judge(tab, { onlyColours = false } = {}) {
  const client = await tab.context.newCDPSession(tab.page);
  const evaluate = async (expression) => {
    const answer = await client.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (answer.exceptionDetails) throw new Error(answer.exceptionDetails.exception?.description ?? "axe did not run");
    return answer.result.value;
  };
  await evaluate(`${axe}; undefined`);
  const rules = onlyColours ? ["color-contrast"] : ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  const runOnly = { type: onlyColours ? "rule" : "tag", values: rules };
  const found = await evaluate(`axe.run(document, { runOnly: ${JSON.stringify(runOnly)}, resultTypes: ["violations"] })
    .then((result) => result.violations.map(({ id, impact, nodes }) => ({ id, impact, nodes: nodes.slice(0, 5).map((node) =>
      node.target.join(" ") + ": " + node.any.concat(node.all).map((one) => one.message).join("; ")) })))`);
  await client.detach();
  const serious = found.filter(({ impact }) => impact === "serious" || impact === "critical");
  if (serious.length) throw new Error(serious.map(({ id, impact, nodes }) => `${id} (${impact})\n    ${nodes.join("\n    ")}`).join("\n  "));
}

/** Fails if the page is wider than the window. */
export async function fits(tab) {
  const [inner, outer] = await tab.page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  if (inner <= outer) return;
  const wide = await tab.page.evaluate(() => {
    const edge = document.documentElement.clientWidth;
    const sticking = [...document.querySelectorAll("body *")].filter((element) => {
      const clipped = element.closest(".scroll, pre, [data-graph], .rail ul, dialog");
      return element.getBoundingClientRect().right > edge + 1 && (!clipped || clipped === element);
    });
    return sticking.slice(0, 5).map((element) => element.outerHTML.slice(0, 160));
  });
  throw new Error(`${inner} px wide in ${outer}: ${wide.join("\n")}`);
}
