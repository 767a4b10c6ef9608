import { scenario } from "@tapedeck/query/testing/scenario";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type SeededStack, startSeededStack } from "../stack/seeded-stack.ts";
import { browserProgram, faultsOf, launchBrowser, openPage, screenshot } from "./browser.ts";
import { weeks, writeWeeks } from "./weeks.ts";

describe.skipIf(browserProgram === undefined)("the trends", () => {
  const cleanup = new AsyncDisposableStack();
  let seeded: SeededStack;
  let browser: Browser;

  beforeAll(async () => {
    seeded = cleanup.use(await startSeededStack());
    browser = cleanup.adopt(await launchBrowser(), (one) => one.close());
  });
  afterAll(() => cleanup.disposeAsync());

  const path = (more: Record<string, string>) =>
    `http://${seeded.stack.http}/trends?${new URLSearchParams({ from: weeks.from, to: weeks.to, zone: "UTC", ...more })}`;
  const designs = [
    ["light", 1440],
    ["dark", 1440],
    ["light", 390],
    ["dark", 390],
  ] as const;

  /** Every look of one address: no serious fault, nothing wider than the screen, no script that throws. */
  async function looked(name: string, url: string, text: string): Promise<void> {
    for (const [colorScheme, width] of designs) {
      const viewport = { width, height: width === 390 ? 844 : 900 };
      await using opened = await openPage(browser, url, { colorScheme, viewport, reducedMotion: "reduce" });
      const { page, problems } = opened;
      await page.getByText(text).first().waitFor();
      expect([name, await faultsOf(page)]).toEqual([name, []]);
      const overflow = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
      expect([name, colorScheme, width, overflow, problems]).toEqual([name, colorScheme, width, 0, []]);
      await screenshot(page, `${name}-${colorScheme}-${width}`, { fullPage: true });
    }
  }

  it("say what to do where nothing is recorded, and where nothing happened in the time", async () => {
    await looked("trends-empty", path({}), "Nothing is recorded yet");
    const one = scenario();
    const session = one.session("01ONE");
    session.started();
    session.configured();
    session.loopStarted();
    session.build("web", "started");
    session.build("web", "succeeded", 4_000);
    session.loopEnded("succeeded", 5_000);
    await seeded.seed(one.events);
    await looked("trends-before", path({ from: "2026-10-01", to: "2026-10-20" }), "No loop ended in this time");
    await looked("trends-one-point", path({ pick: "wait", since: weeks.from }), "alice/shop · loop 1");
  });

  it("are readable with weeks of loops, picked and with SQL, in every design", async () => {
    await writeWeeks(seeded);
    await looked("trends", path({}), "Flaky artifacts");
    await looked("trends-picked", path({ pick: "failures", since: "2026-11-26" }), "web does not build");
    await using opened = await openPage(browser, path({}));
    const { page } = opened;
    await page.getByLabel("SQL of Wait per loop").click();
    await page.getByLabel("SQL of Flaky artifacts").click();
    await page.locator('[data-chart="green"] .u-over').hover();
    await screenshot(page, "trends-sql", { fullPage: true });
    expect(await faultsOf(page)).toEqual([]);
    // The visitor's other colours reach what is drawn.
    await page.getByLabel(/^Colours: /).click();
    await page.getByLabel(/^Colours: /).click();
    await screenshot(page, "trends-turned-dark");
  });
});
