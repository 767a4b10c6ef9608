import { cpus, loadavg } from "node:os";
import { type Scenario, scenario, startedAt, writeTogether } from "@tapedeck/query/testing/scenario";
import { sourceName } from "@tapedeck/shared/source";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type SeededStack, startSeededStack } from "../stack/seeded-stack.ts";
import { browserProgram, launchBrowser, openPage, screenshot } from "./browser.ts";
import { framesDuring } from "./frames.ts";

// Prints how well the page keeps up, for people to judge. The assertions hold on any machine: everything arrives and is
// shown.

const liveSeconds = 60;
const eventsPerSecond = 200;

type Session = ReturnType<Scenario["session"]>;
type Source = { readonly name: string; readonly scenario: Scenario; readonly session: Session };

describe.skipIf(browserProgram === undefined)("the page, measured", () => {
  const cleanup = new AsyncDisposableStack();
  let seeded: SeededStack;
  let browser: Browser;
  let base = "";
  /** The load shows how busy the machine is with other work. */
  const print = (what: string, figures: object) =>
    console.log(
      `${what}: ${JSON.stringify({ ...figures, cores: cpus().length, load: Math.round(loadavg()[0] ?? 0) })}`,
    );

  beforeAll(async () => {
    seeded = cleanup.use(await startSeededStack());
    browser = cleanup.adopt(await launchBrowser(), (one) => one.close());
    base = `http://${seeded.stack.http}`;
  });
  afterAll(() => cleanup.disposeAsync());

  /** A source with a running session. */
  function sourceNamed(name: string): Source {
    const own = scenario(
      sourceName({ workspace: "acme", developer: name.toLowerCase(), project: "shop", upstream: "skaffold" }),
    );
    const session = own.session(`0${name.toUpperCase()}`);
    session.started({ branch: "main" }, Date.now() - startedAt);
    session.configured();
    own.add({ kind: "upstream.connected" });
    return { name, scenario: own, session };
  }

  /** A loop of ten events. */
  function oneLoop(session: Session, at: number, isGood: boolean): void {
    session.loopStarted(at);
    session.build("web", "started", at + 1);
    session.build("api", "started", at + 2);
    session.text("building", at + 3);
    session.build("api", "succeeded", at + 40);
    session.build("web", isGood ? "succeeded" : "failed", at + 60);
    session.text("built", at + 61);
    session.phase("deploy", "started", at + 62);
    session.phase("deploy", "succeeded", at + 90);
    session.loopEnded(isGood ? "succeeded" : "failed", at + 95);
  }

  async function flush({ scenario: { events } }: Source): Promise<number> {
    const fresh = events.splice(0);
    await writeTogether(seeded.log, fresh, 16);
    return fresh.length;
  }

  it(`${eventsPerSecond} events a second for ${liveSeconds} s on Now`, async () => {
    const sources = Array.from({ length: 20 }, (_, index) => sourceNamed(`LIVE${String.fromCharCode(65 + index)}`));
    for (const source of sources) await flush(source);
    await seeded.stack.caughtUp();
    await using opened = await openPage(browser, `${base}/`);
    const { page, errors } = opened;
    await expect.poll(() => page.locator(".row").count()).toBe(sources.length);
    const loops = new Map<Source, number>();
    let written = 0;
    const figures = await framesDuring(page, async () => {
      const began = performance.now();
      for (let turn = 0; performance.now() - began < liveSeconds * 1_000; turn++) {
        const source = sources[turn % sources.length] ?? expect.fail();
        const number = (loops.get(source) ?? 0) + 1;
        loops.set(source, number);
        oneLoop(source.session, Date.now() - startedAt, number % 4 !== 0);
        written += await flush(source);
        const due = began + (written / eventsPerSecond) * 1_000;
        await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())));
      }
      for (const [{ name }, number] of loops) {
        const last = page
          .locator(".row", { hasText: `${name.toLowerCase()}/shop` })
          .locator(".strip a")
          .last();
        await expect.poll(() => last.getAttribute("title")).toContain(`loop ${number}:`);
      }
    });
    print("Now, live", { events: written, seconds: liveSeconds, ...figures });
    expect(errors).toEqual([]);
    await screenshot(page, "now-live");
  });

  it("a session of 50,000 events", async () => {
    const source = sourceNamed("LONG");
    const { session, scenario: own } = source;
    let at = Date.now() - startedAt;
    while (own.events.length < 50_000) {
      at += 200;
      if (own.events.length % 500 < 10) oneLoop(session, at, own.events.length % 1_500 > 10);
      else session.text(`line ${own.events.length} of what the app prints while nobody looks`, at);
    }
    const count = own.events.filter((event) => event.session === session.session).length;
    await flush(source);
    await seeded.stack.caughtUp();
    const began = performance.now();
    await using opened = await openPage(browser, `${base}/sessions/0LONG`);
    const { page, errors } = opened;
    const passed = () => Math.round(performance.now() - began);
    await page.locator(".event-list button").first().waitFor();
    const shownMs = passed();
    await page.getByLabel(`${count} events`, { exact: true }).waitFor();
    const wholeMs = passed();
    const filterBegan = performance.now();
    await page.getByLabel("Filter events").fill("outcome:failed");
    await expect.poll(() => page.locator(".event-list li.failed").count()).toBeGreaterThan(0);
    const filteredMs = Math.round(performance.now() - filterBegan);
    await page.getByLabel("Filter events").fill("");
    const figures = await framesDuring(page, async () => {
      await page.locator("body").click({ position: { x: 4, y: 4 } });
      for (let step = 0; step < 60; step++) await page.keyboard.press("ArrowLeft");
    });
    print("session of 50,000 events", { shownMs, wholeMs, filteredMs, slider: figures });
    expect(errors).toEqual([]);
  });

  it("200 sources on Now", async () => {
    const letters = "ABCDEFGHIJ";
    const sources = Array.from({ length: 200 }, (_, index) =>
      sourceNamed(`X${[...String(index)].map((digit) => letters[Number(digit)]).join("")}`),
    );
    // Its failure is older than a thousand loops of others.
    const quiet = sourceNamed("QUIET");
    oneLoop(quiet.session, Date.now() - startedAt, false);
    await flush(quiet);
    for (const [index, source] of sources.entries()) {
      for (let number = 0; number < 5; number++)
        oneLoop(source.session, Date.now() - startedAt, (index + number) % 5 !== 0);
      await flush(source);
    }
    await seeded.stack.caughtUp();
    const began = performance.now();
    await using opened = await openPage(browser, `${base}/`);
    const { page, errors } = opened;
    await expect.poll(() => page.locator(".row").count()).toBeGreaterThanOrEqual(200);
    const shownMs = Math.round(performance.now() - began);
    await page.locator(".row.in-failing", { hasText: "quiet/shop" }).waitFor();
    await page.mouse.move(600, 500);
    const figures = await framesDuring(page, async () => {
      for (let step = 0; step < 120; step++) {
        await page.mouse.wheel(0, step < 60 ? 160 : -160);
        await new Promise((resolve) => setTimeout(resolve, 16));
      }
    });
    print("200 sources on Now, scrolled", { shownMs, rows: await page.locator(".row").count(), ...figures });
    expect(errors).toEqual([]);
    await screenshot(page, "now-200");
  });
});
