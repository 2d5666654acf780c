// Pictures of the main pages, in light and dark mode, for the documents. None is larger than necessary.

import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { executions, end, holds, launch, leave, look, part, tab, until } from "./page.mjs";

const BYTES_MAX = 150 * 1024;
const folder = process.env.RUTTER_PICTURES;
// A running execution that also waits for a person.
const voyage = await leave("voyage.yaml");
await until("it waits", () => look(voyage).questions?.length);
const PICTURES = {
  overview: ["/", 580],
  execution: [`/executions/${voyage}`, 960],
  timeline: [`/executions/${executions.compensated}?tab=timeline`, 760],
  approvals: ["/approvals", 860],
};

mkdirSync(folder, { recursive: true });
await launch();

for (const theme of ["light", "dark"]) {
  const window = await tab({ theme });
  for (const [name, [path, height]] of Object.entries(PICTURES)) {
    await part(`${name}, ${theme}`, async () => {
      await window.page.setViewportSize({ width: 1280, height });
      await window.go(path);
      await window.page.waitForLoadState("load");
      const file = join(folder, `${name}-${theme}.png`);
      await window.page.screenshot({ path: file });
      holds(statSync(file).size <= BYTES_MAX, `${file} has ${statSync(file).size} bytes`);
      window.calm();
    });
  }
  await window.close();
}

await end();
