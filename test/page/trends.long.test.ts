import { scenario } from "@tapedeck/query/testing/scenario";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type SeededStack, startSeededStack } from "../stack/seeded-stack.ts";
import { browserProgram, faultsOf, launchBrowser, openPage, screenshot } from "./browser.ts";
import { contrast } from "./contrast.ts";
import { darkPhone, designs, lightDesktop } from "./page-designs.ts";
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

  let written: Promise<void> | undefined;
  const weeksAreWritten = () => {
    written ??= writeWeeks(seeded);
    return written;
  };

  const path = (more: Record<string, string>) =>
    `http://${seeded.stack.http}/trends?${new URLSearchParams({ from: weeks.from, to: weeks.to, zone: "UTC", ...more })}`;
  /** Checks every view of one address: no serious fault, nothing wider than the screen, no script errors. */
  async function observed(name: string, url: string, text: string): Promise<void> {
    for (const [colorScheme, width] of designs(lightDesktop, darkPhone)) {
      const viewport = { width, height: width === 390 ? 844 : 900 };
      await using opened = await openPage(browser, url, { colorScheme, viewport, reducedMotion: "reduce" });
      const { page, errors } = opened;
      await page.getByText(text).first().waitFor();
      expect([name, await faultsOf(page)]).toEqual([name, []]);
      const overflow = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
      expect([name, colorScheme, width, overflow, errors]).toEqual([name, colorScheme, width, 0, []]);
      await screenshot(page, `${name}-${colorScheme}-${width}`, { fullPage: true });
    }
  }

  it("say what to do where nothing is recorded, and where nothing happened in the time", async () => {
    await observed("trends-empty", path({}), "Nothing is recorded yet");
    const one = scenario();
    const session = one.session("01ONE");
    session.started();
    session.configured();
    session.loopStarted();
    session.build("web", "started");
    session.build("web", "succeeded", 4_000);
    session.loopEnded("succeeded", 5_000);
    await seeded.seed(one.events);
    await observed("trends-before", path({ from: "2026-10-01", to: "2026-10-20" }), "No loop ended in this time");
    await observed("trends-one-point", path({ pick: "wait", since: weeks.from }), "alice/shop · loop 1");
  });

  it.each(["light", "dark"] as const)("stand apart from each other, and from the page, in %s", async (colorScheme) => {
    await weeksAreWritten();
    await using opened = await openPage(browser, path({}), { colorScheme });
    const { page } = opened;
    await page.locator(".causes .swatch").first().waitFor();
    const shades = (await page.evaluate(
      "[...document.querySelectorAll('.causes .swatch')].map((one) => getComputedStyle(one).backgroundColor)",
    )) as string[];
    const back = (await page.evaluate("getComputedStyle(document.documentElement).backgroundColor")) as string;
    const named = shades.slice(0, 6);
    expect(named).toHaveLength(6);
    for (const [index, shade] of named.entries()) {
      expect([shade, contrast(shade, back) >= 3]).toEqual([shade, true]);
      if (index > 0) expect(contrast(shade, named[index - 1] ?? "")).toBeGreaterThan(1.15);
    }
  });

  it("are readable with weeks of loops, picked and with SQL, in every design", async () => {
    await weeksAreWritten();
    await observed("trends", path({}), "Flaky artifacts");
    await observed("trends-picked", path({ pick: "failures", since: "2026-11-26" }), "web does not build");
    await observed("trends-waits", path({ pick: "wait", since: "2026-11-26" }), "Loops that became ready");
    const sides = { by: "developer", pick: "sides", of: "bob" };
    await observed("trends-side", path(sides), "Loops of bob");
    await observed("trends-phase", path({ pick: "waits", of: "check" }), "Loops that waited for check");
    await using opened = await openPage(browser, path({}));
    const { page } = opened;
    await page.getByLabel("SQL of Wait per loop").click();
    await page.getByLabel("SQL of Flaky artifacts").click();
    await page.locator('[data-chart="green"] .u-over').hover();
    await screenshot(page, "trends-sql", { fullPage: true });
    expect(await faultsOf(page)).toEqual([]);
    await using phone = await openPage(browser, path({ pick: "failures" }), { viewport: { width: 390, height: 844 } });
    const cause = phone.page.getByLabel("Loops behind it").locator("td.what").first();
    const box = (await cause.boundingBox()) ?? expect.fail("no cause");
    expect([box.width > 300, box.x + box.width <= 390]).toEqual([true, true]);
    // The visitor's other colours apply to everything drawn.
    await page.getByLabel(/^Colours: /).click();
    await page.getByLabel(/^Colours: /).click();
    await screenshot(page, "trends-turned-dark");
  });
});
