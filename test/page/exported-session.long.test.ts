import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { scenario } from "@tapedeck/query/testing/scenario";
import type { Browser, Page } from "playwright-core";
import { exportPage } from "tapedeck/commands/export/html/run";
import { defaultBounds } from "tapedeck/commands/export/html/session-data";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { startSeededStack } from "../stack/seeded-stack.ts";
import { type Stack, startStack } from "../stack/stack.ts";
import { startTokenStack } from "../stack/token-stack.ts";
import { browserProgram, faultsOf, launchBrowser, screenshot } from "./browser.ts";
import { type ExportedPages, exportedPages, openFailedLoop, openFile } from "./exported-pages.ts";
import { darkPhone, designs, lightDesktop } from "./page-designs.ts";

const recordings = join(import.meta.dirname, "../../packages/fakes/recordings/skaffold");

type Item = { readonly position: string; readonly session: string; readonly kind: string };

describe.skipIf(browserProgram === undefined)("a session that was exported as a page", () => {
  const cleanup = new AsyncDisposableStack();
  let stack: Stack;
  let browser: Browser;
  let pages: ExportedPages;
  let file = "";
  /**
   * The number of events in it, as the command reports it. Skaffold's own description at rest may be recorded later.
   */
  let exported = 0;

  const api = async (path: string) => JSON.parse((await stack.httpCall("GET", `/api/v1/${path}`)).body);

  beforeAll(async () => {
    pages = cleanup.use(exportedPages());
    const recording = loadRecording(join(recordings, "04-deploy-failure-then-recovery"));
    const fake = cleanup.use(await startFakeSkaffold({ recording }));
    stack = cleanup.use(await startStack({ skaffold: [{ developer: "bob", address: fake.address }] }));
    browser = cleanup.adopt(await launchBrowser(), (one) => one.close());
    await stack.connected();
    // The output of a loop comes before the next loop begins, as in the original run.
    await fake.playUntil({ v1: 17 });
    await stack.drained(fake);
    await fake.play();
    await stack.drained(fake);
    file = pages.path("bug report.html");
    const { code, out, err } = await pages.tapedeck(stack, {}, "export", "--html", "-s", "bob/shop", "-o", file);
    expect([code, err]).toEqual([0, ""]);
    const said =
      /bug report\.html: session \w+ of bob\/shop\/skaffold, (\d+) events, \d+\.\d KiB; still running\n$/.exec(out);
    exported = Number(said?.[1]);
    expect(exported).toBeGreaterThan(0);
  });
  afterAll(() => cleanup.disposeAsync());

  const shownEvents = (page: Page) => page.locator(".event-list li .kind").allTextContents();

  it("shows its loops, filters its events and shows the state of then, and asks nobody for anything", async () => {
    await using opened = await openFile(browser, file);
    const { page, errors, requests } = opened;
    await page.getByRole("heading", { name: "bob/shop · session" }).waitFor();
    const { items: loops } = await api("operations?source=bob/shop&kind=loop&limit=1000");
    expect(await page.getByLabel("Loops").locator("li").count()).toBe(loops.length);
    const { items } = (await api("events?source=bob/shop&limit=1000")) as { items: Item[] };
    const session = items.at(-1)?.session ?? "";
    const own = items.filter((item) => item.session === session && item.kind !== "mirror.received").slice(0, exported);
    await page.getByLabel(`${own.length} events`, { exact: true }).waitFor();

    await page.getByLabel("Filter events").fill("kind:build.started");
    const expected = own.filter(({ kind }) => kind === "build.started");
    await page.getByText(`${expected.length} of ${own.length}`).waitFor();
    await expect.poll(async () => new Set(await shownEvents(page))).toEqual(new Set(["build.started"]));

    const states = new Set<string>();
    const panel = page.getByLabel("State at this moment");
    for (const { position } of [expected[0], own.find(({ kind }) => kind === "deploy.started")].filter(
      (one) => one !== undefined,
    )) {
      await page.getByLabel("Moment of the session").fill(`${own.findIndex((one) => one.position === position)}`);
      await page.locator(`aside[data-position="${position}"]`).waitFor();
      const { v1, v2 } = (await api(`state?source=bob/shop&session=${session}&at=${position}`)).state;
      const then = (v2.buildState ?? v1.buildState).artifacts as Record<string, string>;
      states.add(JSON.stringify(then));
      const shown = (await panel.locator("dl").first().textContent()) ?? "";
      for (const [name, status] of Object.entries(then)) {
        expect(shown).toMatch(new RegExp(`${name}\\S ${status.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase()}`));
      }
    }
    expect(states.size).toBe(2);
    expect(page.url()).toContain("#/sessions/");
    expect([errors, requests]).toEqual([[], []]);
  });

  it("leads to a failed loop with its cause, its output and what differed, and back", async () => {
    await using opened = await openFile(browser, file);
    const { page, errors, requests } = opened;
    await openFailedLoop(page);
    await page
      .getByRole("heading", { name: /deploy: error: unable to recognize "STDIN": no matches for kind/ })
      .waitFor();
    await page.locator(".log .error", { hasText: /no matches for kind "Deploymint"/ }).waitFor();
    await page.getByLabel("What differs from the last good loop").locator("ol, p").first().waitFor();
    const changed = page.getByLabel("What changed in state");
    await changed.getByRole("rowheader", { name: "deploy phases" }).waitFor();
    expect(await changed.getByText("is that of an earlier one").count()).toBe(0);
    // Items that are not in the file are not links.
    expect(await page.getByRole("link", { name: "bob/shop" }).count()).toBe(0);
    for (const link of await page.getByRole("link").all()) expect(await link.getAttribute("href")).toMatch(/^#\//);
    await page.goBack();
    await page.getByRole("heading", { name: "bob/shop · session" }).waitFor();
    await page.getByRole("button", { name: "Show its output" }).click();
    await page.locator(".log pre .error", { hasText: "Deploymint" }).waitFor();
    await expect.poll(() => page.url()).toMatch(/#\/sessions\/\w+\?.*step=/);
    expect([errors, requests]).toEqual([[], []]);
  });

  it("is used from the keyboard", async () => {
    await using opened = await openFile(browser, file);
    const { page, errors } = opened;
    const slider = page.getByLabel("Moment of the session");
    await page.getByLabel(`${exported} events`, { exact: true }).waitFor();
    const at = async () => Number(await slider.inputValue());
    const last = await at();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).getByText("filter events").waitFor();
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog", { name: "Keys" }).waitFor({ state: "hidden" });
    expect(await at()).toBe(last);
    await page.keyboard.press("ArrowLeft");
    await expect.poll(at).toBe(last - 1);
    await page.keyboard.press("ArrowRight");
    await expect.poll(at).toBe(last);
    await page.keyboard.press("[");
    await expect.poll(at).toBeLessThan(last);
    await page.keyboard.press("Space");
    await page.getByLabel("Pause").waitFor();
    await page.keyboard.press("Space");
    await page.getByLabel("Play").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("kind:build.started");
    await page.getByText(/^\d+ of \d+$/).waitFor();
    expect(errors).toEqual([]);
  });

  it.each(designs(lightDesktop, darkPhone))(
    "has no serious fault of accessibility in %s at %d px",
    async (colorScheme, width) => {
      const viewport = { width, height: width === 390 ? 844 : 900 };
      await using opened = await openFile(browser, file, { colorScheme, viewport, reducedMotion: "reduce" });
      const { page, errors } = opened;
      await page.locator("aside.panel dl").first().waitFor();
      expect(await faultsOf(page)).toEqual([]);
      expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBe(0);
      await screenshot(page, `session-file-${colorScheme}-${width}`);
      await openFailedLoop(page);
      await page.locator(".log .error").waitFor();
      expect([await faultsOf(page), errors]).toEqual([[], []]);
      await screenshot(page, `session-file-loop-${colorScheme}-${width}`);
    },
  );

  it("runs nothing of what was recorded, and shows it as it is", async () => {
    await using seeded = await startSeededStack();
    const hostile = `</script><script>globalThis.ran = 1</script><!-- <img src=x onerror="globalThis.ran = 2">\u2028@@TAPEDECK_SESSION@@`;
    const own = scenario();
    const session = own.session("01HOST");
    session.started({ branch: hostile });
    session.configured();
    session.loopStarted();
    session.build(hostile, "started");
    const text = { text: `${hostile}\n`, task: "Build", subtask: hostile };
    const operation = { kind: "build", subject: hostile, runner: 1, loop: 1 };
    own.add({
      session: "01HOST",
      channel: "v2",
      kind: "log.written",
      operation,
      detail: { $case: "text", value: text },
    });
    session.build(hostile, "failed", 4_000, { error: { code: "BUILD_UNKNOWN", message: hostile }, summary: hostile });
    session.loopEnded("failed", 5_000);
    session.ended(hostile);
    await seeded.seed(own.events);
    const output = pages.path("hostile.html");
    expect(await pages.tapedeck(seeded.stack, {}, "export", "--html", "01HOST", "-o", output)).toMatchObject({
      code: 0,
      err: "",
    });
    const html = readFileSync(output, "utf8");
    expect([html.includes("globalThis.ran"), html.match(/<script/g)?.length]).toEqual([false, 2]);
    await using opened = await openFile(browser, output);
    const { page, errors, requests } = opened;
    await page.locator(".event-list", { hasText: "</script><script>globalThis.ran" }).waitFor();
    await page.locator(".label-list", { hasText: "onerror" }).waitFor();
    await page.getByRole("link", { name: "loop 1", exact: true }).click();
    await page.getByLabel("What failed first").getByText("</script>").first().waitFor();
    await page.locator(".log pre", { hasText: "</script><script>" }).waitFor();
    expect(await page.evaluate("globalThis.ran")).toBeUndefined();
    expect([errors, requests]).toEqual([[], []]);
  });

  it("holds what the visitor's token may read, and nothing else", async () => {
    await using tokens = await startTokenStack();
    const own = scenario();
    const session = own.session("01TOKEN");
    session.started();
    session.configured();
    session.loopStarted();
    await tokens.on.seed(own.events);
    const exported = async (workspace: string) => {
      const { text } = await tokens.token(workspace, ["viewer"]);
      return pages.tapedeck(tokens.on.stack, { TAPEDECK_TOKEN: text }, "export", "--html", "01TOKEN", "-o", output);
    };
    const output = pages.path("token.html");
    expect((await exported("other")).err).toContain("there is no session 01TOKEN");
    expect(existsSync(output)).toBe(false);
    expect(await exported("acme")).toMatchObject({ code: 0, err: "" });
    await using opened = await openFile(browser, output);
    await opened.page.getByRole("heading", { name: "alice/shop · session" }).waitFor();
    expect([opened.errors, opened.requests]).toEqual([[], []]);
  });

  it("has the newest events of a session that is too long, and says what it lacks", async () => {
    const output = pages.path("long.html");
    const said = vi.spyOn(process.stdout, "write").mockReturnValue(true);
    vi.stubEnv("TAPEDECK_GRPC_PORT", stack.grpc.split(":").at(-1) ?? "");
    onTestFinished(() => void vi.unstubAllEnvs());
    const bounds = { ...defaultBounds, events: 60, statePoints: 5 };
    await exportPage([], { url: `http://${stack.http}`, source: "bob/shop", output }, {}, bounds);
    expect(said.mock.lastCall?.[0]).toMatch(/, the newest 60 events \(\d+ older ones omitted\), /);
    said.mockRestore();
    await using opened = await openFile(browser, output);
    const { page, errors, requests } = opened;
    await page
      .getByText(/It has the newest 60 events; \d+ older ones left out\. It has the state of 5 of \d+/)
      .waitFor();
    await page.getByLabel("60 events", { exact: true }).waitFor();
    const { items } = (await api("events?source=bob/shop&limit=1000")) as { items: Item[] };
    const own = items.filter(({ kind }) => kind !== "mirror.received").slice(-60);
    // If the state of a moment is missing, that of an earlier one is shown and labelled so.
    const slider = page.getByLabel("Moment of the session");
    const panel = page.getByLabel("State at this moment");
    const shown = new Set<string>();
    for (let index = 0; index < own.length; index++) {
      await slider.fill(`${index}`);
      await expect.poll(() => panel.getAttribute("data-position")).not.toBe("");
      const position = (await panel.getAttribute("data-position")) ?? "";
      expect(position <= (own[index]?.position ?? "")).toBe(true);
      shown.add(position);
    }
    expect(shown.size).toBeLessThan(own.length);
    expect(shown.size).toBeGreaterThanOrEqual(5);
    expect([errors, requests]).toEqual([[], []]);
  });

  it("says what is wrong with what was asked", async () => {
    expect((await pages.tapedeck(stack, {}, "export", "--html", "01NOTHING")).err).toContain(
      "there is no session 01NOTHING",
    );
    expect((await pages.tapedeck(stack, {}, "export", "--html", "-o", "a.html.gz")).err).toContain(
      "a name that ends in .html",
    );
  });
});
