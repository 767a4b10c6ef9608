import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Stack, startStack } from "../stack/stack.ts";
import { browserProgram, faultsOf, launchBrowser, openPage, screenshot } from "./browser.ts";
import { failingAndBusy } from "./failing-and-busy.ts";
import { type Design, darkPhone, designs, lightDesktop } from "./page-designs.ts";

type Views = Readonly<Record<string, string>>;
type Shown = {
  readonly browser: Browser;
  readonly base: string;
  readonly state: string;
  readonly views: Views;
  /** Brings the page that is shown into its state. */
  readonly until?: (page: Page) => Promise<void>;
};

/** How far what lies over Now at the foot of a phone's screen ends from it; 0 where nothing does. */
const sheetGap = `(() => {
  const panel = document.querySelector(".now .panel");
  const isSheet = panel !== null && getComputedStyle(panel).position === "fixed";
  return isSheet ? innerHeight - panel.getBoundingClientRect().bottom : 0;
})()`;

const counted = (page: Page) => page.locator(".top .counts").getByText("recording").waitFor();

/** Every view in one state and design: no serious fault, nothing wider than the screen, no script that throws. */
async function shownWell([colorScheme, width]: Design, shown: Shown): Promise<void> {
  const { browser, base, state, views, until } = shown;
  const viewport = { width, height: width === 390 ? 844 : 900 };
  const found: unknown[] = [];
  for (const [name, path] of Object.entries(views)) {
    await using opened = await openPage(browser, base + path, { colorScheme, viewport, reducedMotion: "reduce" });
    const { page, errors } = opened;
    await page.locator("main > *").first().waitFor();
    const reading = page.locator("main").getByText(/^Reading /);
    await expect.poll(() => reading.count()).toBe(0);
    await until?.(page);
    await screenshot(page, `${state}-${name}-${colorScheme}-${width}`);
    const overflow = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
    found.push({ name, faults: await faultsOf(page), overflow, sheetGap: await page.evaluate(sheetGap), errors });
  }
  const nothing = Object.keys(views).map((name) => ({ name, faults: [], overflow: 0, sheetGap: 0, errors: [] }));
  expect(found).toEqual(nothing);
}

describe.skipIf(browserProgram === undefined)("every view is shown well", () => {
  const on = failingAndBusy();

  const viewsOf = async (source: string): Promise<Views> => {
    const { session, name } = await on.newestLoop(source);
    return {
      now: "/",
      source: `/?source=${source}`,
      loop: `/loops/${name}`,
      session: `/sessions/${session}`,
      "session-output": `/sessions/${session}?step=all`,
      compare: `/compare?left=${source}&right=${source === "bob/shop" ? "alice" : "bob"}/shop`,
      loops: "/loops",
      "loops-failed": "/loops?outcome=failed",
      "loops-found": "/loops?q=error",
      "loops-none": "/loops?q=nowhere&outcome=failed",
      "source-days": `/sources/${source}`,
      trends: "/trends?range=7d&by=developer",
      health: "/health",
    };
  };

  it.each(designs(lightDesktop))("while a loop builds, in %s at %d px", async (...design) => {
    const { browser, base } = on;
    await shownWell(design, { browser, base, state: "busy", views: await viewsOf("alice/shop"), until: counted });
  });

  it.each(designs(lightDesktop, darkPhone))("when a loop has failed, in %s at %d px", async (...design) => {
    const { browser, base } = on;
    await shownWell(design, { browser, base, state: "failing", views: await viewsOf("bob/shop"), until: counted });
  });

  it.each(designs(darkPhone))("when the connection is lost, in %s at %d px", async (...design) => {
    const { browser, base, cable } = on;
    for (const [name, path] of Object.entries(await viewsOf("bob/shop"))) {
      const until = async (page: Page) => {
        await counted(page);
        cable.interrupt();
        await page.getByText(/^Connection lost at/).waitFor();
      };
      try {
        await shownWell(design, { browser, base, state: "lost", views: { [name]: path }, until });
      } finally {
        cable.restore();
      }
    }
  });
});

describe.skipIf(browserProgram === undefined)("every view of a Tapedeck that has recorded nothing", () => {
  const cleanup = new AsyncDisposableStack();
  let [stack, browser]: [Stack?, Browser?] = [];

  beforeAll(async () => {
    stack = cleanup.use(await startStack({}));
    browser = cleanup.adopt(await launchBrowser(), (one) => one.close());
  });
  afterAll(() => cleanup.disposeAsync());

  const views = {
    now: "/",
    loop: "/loops/01NOTHING.1.1",
    session: "/sessions/01NOTHING",
    compare: "/compare",
    trends: "/trends",
    health: "/health",
  };

  it.each(designs(lightDesktop))("is shown well in %s at %d px", async (...design) => {
    const shown = { browser: browser ?? expect.fail(), base: `http://${stack?.http}`, state: "empty", views };
    await shownWell(design, shown);
  });
});
