import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startUp } from "tapedeck/testing/up";
import { expect, it } from "vitest";
import { browserProgram, launchBrowser, openPage, screenshot } from "./browser.ts";

/** What `npm start` runs, once everything is installed. */
it.skipIf(browserProgram === undefined)("the demo's page shows its sources and leads to a failure", async () => {
  await using cleanup = new AsyncDisposableStack();
  const cwd = mkdtempSync(join(tmpdir(), "tapedeck-demo-page-"));
  chmodSync(cwd, 0o711); // started by root, Postgres runs as another user
  cleanup.defer(() => rmSync(cwd, { recursive: true, force: true }));
  const browser = cleanup.adopt(await launchBrowser(), (one) => one.close());
  const began = performance.now();
  const seconds = () => Math.round((performance.now() - began) / 100) / 10;
  const up = await startUp({ cwd });
  cleanup.defer(async () => void (await up.stop()));
  const ready = seconds();
  await using opened = await openPage(browser, `${up.env.TAPEDECK_URL}/`);
  const { page, problems } = opened;
  const sources = ["alice/shop", "bob/shop", "chris/blog", "dana/shop", "erin/cart", "node-1/host"];
  for (const name of sources) await page.locator(".row", { hasText: name }).waitFor({ timeout: 60_000 });
  const shown = seconds();
  const why = page.locator(".row.in-failing").getByText("Why?").first();
  await why.waitFor({ timeout: 180_000 });
  const failed = seconds();
  await screenshot(page, "demo-now");
  await why.click();
  await page
    .getByText(/failed|What differs/)
    .first()
    .waitFor();
  await screenshot(page, "demo-why");
  console.log(`the demo's page: ${JSON.stringify({ ready, shown, failed, inSeconds: true })}`);
  expect([await page.locator("h1").count(), problems]).toEqual([1, []]);
});
