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
  const { page, errors } = opened;
  const sources = ["alice/shop", "bob/shop", "chris/blog", "dana/shop", "erin/cart", "node-1/host"];
  for (const name of sources) await page.locator(".row", { hasText: name }).waitFor();
  const shown = seconds();
  // Bob's manifests fail to deploy, and later to be rendered.
  const row = page.locator(".row.in-failing", { hasText: "bob/shop" });
  await row.getByText("Why?").waitFor();
  const failed = seconds();
  await screenshot(page, "demo-now");
  // The demo goes on: what the row says is read in the moment of the click.
  const [step = "", href = ""] = await row.evaluate((found) => {
    const why = found.querySelector("a.why") as unknown as Link | null;
    why?.click();
    return [found.querySelector(".says b")?.textContent ?? "", why?.getAttribute("href") ?? ""];
  });
  await page.getByRole("heading", { level: 1, name: /^bob\/shop · loop \d+$/ }).waitFor();
  expect(new URL(page.url()).pathname).toBe(href);
  expect(Object.keys(said)).toContain(step);
  const failure = page.getByRole("region", { name: "What failed first" });
  await failure.getByRole("heading", { name: `${step}: ` }).waitFor();
  await failure.getByText(said[step] ?? "").waitFor();
  // Beside it stands the last good loop, and with that it is compared.
  await page.getByRole("link", { name: "Compare them" }).click();
  await page.getByRole("heading", { level: 1, name: "Compare" }).waitFor();
  await page.locator(".difference-list li", { hasText: `${step} failed` }).waitFor();
  await screenshot(page, "demo-why");
  console.log(`the demo's page: ${JSON.stringify({ ready, shown, failed, inSeconds: true })}`);
  expect([await page.locator("h1").count(), errors]).toEqual([1, []]);
});

type Link = { click(): void; getAttribute(name: string): string | null };

/** What the tool that failed wrote, by step. */
const said: Readonly<Record<string, RegExp>> = {
  deploy: /no matches for kind "Deploymint"/,
  render: /MalformedYAMLError/,
};
