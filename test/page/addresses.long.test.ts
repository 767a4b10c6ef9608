import { scenario } from "@tapedeck/query/testing/scenario";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { startSeededStack } from "../stack/seeded-stack.ts";
import { browserProgram, launchBrowser, openPage } from "./browser.ts";
import { failingAndBusy } from "./failing-and-busy.ts";

describe.skipIf(browserProgram === undefined)("an address, copied into another profile, shows the same", () => {
  const on = failingAndBusy();

  /** Does something on a page, and looks for its traces on one that was opened with the address of the first. */
  async function copied(path: string, visit: (page: Page) => Promise<void>, see: (page: Page) => Promise<void>) {
    await using opened = await openPage(on.browser, on.base + path);
    await visit(opened.page);
    await see(opened.page);
    // The address of what changes often follows a moment later.
    const copy = opened.page.getByRole("button", { name: /^Copy link/ });
    if ((await copy.count()) > 0) await copy.click();
    await expect
      .poll(async () => {
        const url = opened.page.url();
        await using other = await openPage(on.browser, url);
        other.page.setDefaultTimeout(5_000);
        return await see(other.page).then(
          () => other.errors,
          (error) => [`${url}: ${error}`],
        );
      })
      .toEqual([]);
    expect(opened.errors).toEqual([]);
  }

  it("of Now: what was searched for, and the source beside it", async () => {
    const search = (page: Page) => page.getByLabel("Filter by source, artifact or error");
    await copied(
      "/",
      async (page) => {
        await page.locator(".row").nth(1).waitFor();
        await search(page).fill("bob/");
        await page.locator(".row a.source").click();
      },
      async (page) => {
        await page.getByLabel("State of bob/shop").waitFor();
        expect([await page.locator(".row").count(), await search(page).inputValue()]).toEqual([1, "bob/"]);
      },
    );
  });

  it("of a loop: the step, what to find in its output, and whether lines wrap", async () => {
    const { name } = await on.newestLoop("bob/shop");
    const step = (page: Page) => page.getByLabel("Step", { exact: true });
    const selected = (page: Page) => step(page).locator("option:checked").textContent();
    await copied(
      `/loops/${name}`,
      async (page) => {
        await step(page).waitFor();
        expect(await selected(page)).toBe("deploy ✕");
        await step(page).selectOption({ label: "build web" });
        await page.getByLabel("Find in the output").fill("WEB");
        await page.getByLabel("wrap").uncheck();
      },
      async (page) => {
        await page.locator(".log pre:not(.wraps)").waitFor();
        expect(await selected(page)).toBe("build web");
        expect(await page.getByLabel("Find in the output").inputValue()).toBe("WEB");
        const lines = await page.locator(".log pre span").allTextContents();
        expect(lines.length).toBeGreaterThan(0);
        expect(lines.filter((line) => !/web/i.test(line))).toEqual([]);
      },
    );
  });

  it("of a session: the moment, the filter, the speed and the step whose output is shown", async () => {
    const { session } = await on.newestLoop("bob/shop");
    const { items } = await on.api(`operations?session=${session}&kind=build&subject=web`);
    const [build] = items;
    await copied(
      `/sessions/${session}`,
      async (page) => {
        await page.getByLabel("Filter events").fill("kind:build.*");
        await page.getByLabel("Speed").selectOption("50");
        await page.getByRole("button", { name: "Show its output" }).click();
        // The failed step is shown first.
        await page.locator(".log pre", { hasText: "Deploymint" }).waitFor();
        await page.getByLabel("Step", { exact: true }).selectOption(build.startPosition);
        await page.locator(".event-list button").last().click();
        await expect.poll(() => new URL(page.url()).searchParams.get("at")).not.toBeNull();
      },
      async (page) => {
        await page.getByLabel("Events", { exact: true }).waitFor();
        expect(await page.getByLabel("Filter events").inputValue()).toBe("kind:build.*");
        expect(await page.getByLabel("Speed").inputValue()).toBe("50");
        expect(new Set(await page.locator(".event-list .kind").allTextContents())).toEqual(
          new Set(["build.started", "build.succeeded"]),
        );
        await page.getByLabel("Output", { exact: true }).waitFor();
        expect(await page.getByLabel("Step", { exact: true }).inputValue()).toBe(build.startPosition);
        await page.locator(`aside[data-position="${new URL(page.url()).searchParams.get("at")}"]`).waitFor();
      },
    );
  });

  it("of Trends: who stands side by side, of which branch, and whose SQL is open", async () => {
    await copied(
      "/trends?range=7d",
      async (page) => {
        await page.getByRole("link", { name: "by developer" }).click();
        await page.locator('[data-side="bob"]').waitFor();
        await page.getByLabel("SQL of Wait per loop").click();
      },
      async (page) => {
        await page.locator('[data-side="alice"]').waitFor();
        await page.locator('[data-chart="wait"] .sql pre', { hasText: "from tapedeck.loop_times" }).waitFor();
        expect(await page.locator(".sql:visible").count()).toBe(1);
      },
    );
  });

  it("of a session that is played or dragged for long: the last moment", async () => {
    const { session } = await on.newestLoop("bob/shop");
    await using opened = await openPage(on.browser, `${on.base}/sessions/${session}`);
    const { page, errors } = opened;
    const slider = page.getByLabel("Moment of the session");
    await slider.waitFor();
    const last = Number(await slider.getAttribute("max"));
    // More often than a browser lets an address change.
    const moves = 600;
    await slider.evaluate(
      (input, { last, moves }) => {
        for (let index = 1; index <= moves; index++) {
          Reflect.set(input, "value", String(index % last));
          input.dispatchEvent(new Event("input", { bubbles: true }));
        }
      },
      { last, moves },
    );
    await expect.poll(async () => Number(await slider.inputValue())).toBe(moves % last);
    const events = await on.api(`events?session=${session}&limit=1000`);
    const shown = events.items.filter(({ kind }: { kind: string }) => kind !== "mirror.received");
    await expect.poll(() => new URL(page.url()).searchParams.get("at")).toBe(shown[moves % last].position);
    expect(errors).toEqual([]);
  });
});

describe.skipIf(browserProgram === undefined)("a session and a loop", () => {
  const on = failingAndBusy();

  it("show what a step printed where it is chosen in the waterfall", async () => {
    const { session } = await on.newestLoop("bob/shop");
    await using opened = await openPage(on.browser, `${on.base}/sessions/${session}`);
    const { page, errors } = opened;
    // Until then, history is still being read.
    await page.getByLabel("Waterfall").getByRole("link", { name: "loop 2" }).waitFor();
    const canvas = page.getByLabel("Waterfall").locator("canvas");
    // The rows are web's build, the rendering and the deploy.
    await canvas.click({ position: { x: 200, y: 22 + 24 + 24 + 12 } });
    await page.locator(".log .error", { hasText: "Deploymint" }).waitFor();
    expect(await page.getByLabel("Step", { exact: true }).locator("option:checked").textContent()).toBe("deploy ✕");
    await canvas.click({ position: { x: 200, y: 22 + 12 } });
    await page.locator(".log pre", { hasText: "web" }).waitFor();
    expect(await page.locator(".log pre", { hasText: "Deploymint" }).count()).toBe(0);
    // Another loop has other output.
    await page.getByLabel("Loops").getByRole("link").last().click();
    await page.getByLabel("Output", { exact: true }).waitFor({ state: "detached" });
    expect(errors).toEqual([]);
  });

  it("show what the loop changed in the state of its source, as the API gives both moments", async () => {
    const { items } = await on.api("operations?source=bob/shop&kind=loop&limit=10");
    const [failed] = items;
    const stateAt = async (position: string) => {
      const { v1, v2 } = (await on.api(`state?source=bob/shop&session=${failed.session}&at=${position}`)).state;
      return v2.buildState === null ? v1 : v2;
    };
    const [before, after] = [await stateAt(failed.startPosition), await stateAt(failed.endPosition)];
    expect([before.deployState.status, after.deployState.status]).toEqual(["Complete", "Failed"]);
    const { session, runner, loop } = failed;
    await using opened = await openPage(on.browser, `${on.base}/loops/${session}.${runner}.${loop}`);
    const { page, errors } = opened;
    const changes = page.getByLabel("What changed in state");
    const line = changes.locator("tr", { has: page.getByRole("rowheader", { name: "deploy phases" }) });
    await line.waitFor();
    expect(await line.locator("td").allTextContents()).toEqual(["✓ complete", "✕ failed"]);
    // The others were built in the loop before.
    await changes.getByText(/^unchanged since loop 1: api( api:\S+)?, worker/).waitFor();
    expect(errors).toEqual([]);
  });
});

it.skipIf(browserProgram === undefined)(
  "a loop has its page after a thousand others, too, and its neighbours",
  async () => {
    await using seeded = await startSeededStack();
    const own = scenario();
    const session = own.session("01MANY");
    session.started();
    session.configured();
    const loops = 1_010;
    for (let index = 0; index < loops; index++) {
      session.loopStarted(index * 1_000);
      session.build("web", "started", index * 1_000 + 1);
      session.build("web", "succeeded", index * 1_000 + 500);
      session.loopEnded("succeeded", index * 1_000 + 600);
    }
    await seeded.seed(own.events);
    await using cleanup = new AsyncDisposableStack();
    const browser = cleanup.adopt(await launchBrowser(), (one) => one.close());
    await using opened = await openPage(browser, `http://${seeded.stack.http}/loops/01MANY.1.3`);
    const { page, errors } = opened;
    await page.getByRole("heading", { name: /loop 3$/ }).waitFor();
    expect(await page.getByLabel("Waterfall").locator("tbody tr").count()).toBe(1);
    await page.getByRole("link", { name: "loop 4 →" }).click();
    await page.getByRole("heading", { name: /loop 4$/ }).waitFor();
    await page.getByRole("link", { name: "← loop 3" }).waitFor();
    await page.goto(`http://${seeded.stack.http}/loops/01MANY.1.${loops}`);
    await page.getByRole("link", { name: `← loop ${loops - 1}` }).waitFor();
    expect([await page.getByRole("link", { name: "→" }).count(), errors]).toEqual([0, []]);
  },
);
