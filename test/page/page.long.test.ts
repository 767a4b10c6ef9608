import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { type FakeSkaffold, startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Stack, startStack } from "../stack/stack.ts";
import { startTokenStack } from "../stack/token-stack.ts";
import { browserProgram, type Cable, cableTo, faultsOf, launchBrowser, openPage, screenshot } from "./browser.ts";
import { darkPhone, designs, lightDesktop } from "./page-designs.ts";

const recordings = join(import.meta.dirname, "../../packages/fakes/recordings/skaffold");

/** The messages of the first API up to the end of the first failed loop. */
const untilFailure = { v1: 17 };

// Evaluated as text: this program has no browser types. A session's events come in two pieces, as those of a long one do.
const watchStates = `
  const fetched = fetch;
  globalThis.fetch = async (...asked) => {
    const answer = await fetched(...asked);
    if (!String(asked[0]).startsWith("/api/v1/events?")) return answer;
    const lines = (await answer.text()).split("\\n");
    const pieces = [lines.splice(0, 40), lines].map((piece) => new TextEncoder().encode(piece.join("\\n") + "\\n"));
    const pull = (stream) => {
      stream.enqueue(pieces.shift());
      if (pieces.length === 0) stream.close();
    };
    return new Response(new ReadableStream({ pull }, { highWaterMark: 0 }), answer);
  };
  globalThis.statesSeen = new Set();
  const look = () => {
    for (const { dataset } of document.querySelectorAll("aside[data-position]"))
      if (dataset.position !== "") statesSeen.add(dataset.position);
  };
  new MutationObserver(look).observe(document, { subtree: true, childList: true, attributes: true });
`;

type Item = { readonly position: string; readonly kind: string; readonly session: string };

describe.skipIf(browserProgram === undefined)("the page", () => {
  const cleanup = new AsyncDisposableStack();
  let stack: Stack;
  let bob: FakeSkaffold;
  let alice: FakeSkaffold;
  let browser: Browser;
  let cable: Cable;
  let base = "";

  beforeAll(async () => {
    const recorded = (name: string) => startFakeSkaffold({ recording: loadRecording(join(recordings, name)) });
    bob = cleanup.use(await recorded("04-deploy-failure-then-recovery"));
    alice = cleanup.use(await recorded("10-status-check-port-forward-sync-app-logs"));
    const skaffold = [
      { developer: "bob", address: bob.address },
      { developer: "alice", address: alice.address },
    ];
    stack = cleanup.use(await startStack({ skaffold }));
    cable = cleanup.use(await cableTo(stack.http));
    base = `http://${cable.address}`;
    browser = cleanup.adopt(await launchBrowser(), (one) => one.close());
    await stack.connected();
    await bob.playUntil(untilFailure);
    await alice.play();
    await stack.drained(bob, alice);
  });
  afterAll(() => cleanup.disposeAsync());

  const api = async (path: string) => JSON.parse((await stack.httpCall("GET", `/api/v1/${path}`)).body);
  const failing = (page: Page) => page.locator(".row", { hasText: "bob/shop" }).getByText("Why?");

  it("leads from a failure to its cause in two clicks, and a copied URL leads a new profile there", async () => {
    await using opened = await openPage(browser, `${base}/`);
    const { page, errors } = opened;
    await failing(page).click();
    await page
      .getByRole("heading", { name: /deploy: error: unable to recognize "STDIN": no matches for kind/ })
      .waitFor();
    await page.locator(".log .error", { hasText: /no matches for kind "Deploymint"/ }).waitFor();
    const raw = opened.context.waitForEvent("page");
    await page.getByRole("button", { name: "Raw" }).click();
    await (await raw).getByText(/no matches for kind "Deploymint"/).waitFor();
    await using other = await openPage(browser, page.url());
    await other.page.locator(".log .error", { hasText: "Deploymint" }).waitFor();
    expect([...errors, ...other.errors]).toEqual([]);
  });

  it("leads from a text to the loop with it, at the line", async () => {
    await using opened = await openPage(browser, `${base}/loops`);
    const { page, errors } = opened;
    await page.getByRole("searchbox").fill("deploymint");
    await page.getByText(/^\d+ match/).waitFor();
    await page.locator(".history mark", { hasText: "Deploymint" }).first().waitFor();
    expect(page.url()).toContain("q=deploymint");
    await page.locator(".history .of-loop .name a", { hasText: /^loop/ }).first().click();
    await page.locator(".log .found", { hasText: /no matches for kind "Deploymint"/ }).waitFor();
    await page.goto(`${base}/loops?q=nowhere+to+be+found`);
    await page.getByText("“nowhere to be found” was not found.").waitFor();
    await page.goto(`${base}/loops?developer=alice`);
    await page.locator(".history .of-loop", { hasText: "alice/shop" }).first().waitFor();
    expect(await page.locator(".history li", { hasText: "bob/shop" }).count()).toBe(0);
    await page.locator(".history .of-session .source", { hasText: "alice/shop" }).first().click();
    await page.getByRole("heading", { name: "alice/shop" }).waitFor();
    await page.locator(".source-days .strip a").first().waitFor();
    expect(errors).toEqual([]);
  });

  it("shows the state of then where the slider is", async () => {
    const { items } = (await api("events?source=bob/shop&kind=build.started&last=1")) as { items: Item[] };
    const { session = "", position = "" } = items[0] ?? {};
    await using opened = await openPage(browser, `${base}/sessions/${session}`);
    const { page } = opened;
    const panel = page.getByLabel("State at this moment");
    await panel.getByText("succeeded").first().waitFor();
    const button = page.locator(".event-list button", { hasText: "build.started" }).last();
    await page.getByLabel("Filter events").fill("kind:build.started");
    await button.click();
    await page.locator(`aside[data-position="${position}"]`).waitFor();
    const { v1, v2 } = (await api(`state?source=bob/shop&session=${session}&at=${position}`)).state;
    const then = (v2.buildState ?? v1.buildState).artifacts;
    expect(Object.values(then)).toContain("In Progress");
    const shown = (await panel.locator("dl").first().textContent()) ?? "";
    for (const [name, status] of Object.entries(then as Record<string, string>)) {
      // What the loop has not built yet shows when it was built last.
      const words =
        status === "Not Started"
          ? "(last built in loop \\d+|not started)"
          : status.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
      expect(shown).toMatch(new RegExp(`${name}\\S ${words}`));
    }
    await expect.poll(() => new URL(page.url()).searchParams.get("at")).toBe(position);
    const before = await page.getByLabel("Moment of the session").inputValue();
    await page.locator("body").press("ArrowRight");
    await expect.poll(() => page.getByLabel("Moment of the session").inputValue()).toBe(`${Number(before) + 1}`);
  });

  it("shows no state of a moment that nobody chose while a session is read", async () => {
    const { items } = await api("sessions?source=bob/shop&limit=1");
    const [{ session, source }] = items;
    const { items: newest } = (await api(`events?source=${source}&session=${session}&last=50`)) as { items: Item[] };
    const last = newest.findLast(({ kind }) => kind !== "mirror.received");
    await using opened = await openPage(browser, `${base}/`);
    const { page } = opened;
    await page.addInitScript(watchStates);
    await page.goto(`${base}/sessions/${session}`);
    await page.getByLabel("State at this moment").locator("dl").first().waitFor();
    expect(await page.evaluate("[...statesSeen]")).toEqual([last?.position]);
  });

  it("marks the error of a failed step also among the output of all steps", async () => {
    const { items } = await api("operations?source=bob/shop&kind=loop&outcome=failed&limit=1");
    const [{ session, position }] = items;
    await using opened = await openPage(browser, `${base}/sessions/${session}?at=${position}&step=all`);
    const { page } = opened;
    await page.locator(".log pre", { hasText: "Generating tags" }).waitFor();
    await page.locator(".log .error", { hasText: "Deploymint" }).waitFor();
  });

  const views = async () => {
    const { items } = await api("operations?source=bob/shop&kind=loop&outcome=failed&limit=1");
    const [{ session, runner, loop }] = items;
    return {
      now: "/",
      source: "/?source=alice/shop",
      loop: `/loops/${session}.${runner}.${loop}`,
      session: `/sessions/${session}`,
      health: "/health",
      missing: "/sessions/01NOTHING",
    };
  };

  it.each(designs(lightDesktop, darkPhone))(
    "has no serious fault of accessibility in %s at %d px",
    async (colorScheme, width) => {
      const options = { colorScheme, viewport: { width, height: width === 390 ? 844 : 900 } };
      for (const [name, path] of Object.entries(await views())) {
        await using opened = await openPage(browser, base + path, { ...options, reducedMotion: "reduce" });
        const { page, errors } = opened;
        await page.locator("main > *").waitFor();
        await expect.poll(() => page.getByText(/^Reading /).count()).toBe(0);
        expect([name, await faultsOf(page)]).toEqual([name, []]);
        const overflow = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
        expect([name, overflow, errors]).toEqual([name, 0, []]);
        await screenshot(page, `${name}-${colorScheme}-${width}`);
      }
    },
  );

  it("loses and regains the connection without a hole, and says so meanwhile", async () => {
    await using opened = await openPage(browser, `${base}/`);
    const { page } = opened;
    await failing(page).waitFor();
    const { items } = (await api("sessions?source=bob/shop&limit=1")) as { items: Item[] };
    await using other = await openPage(browser, `${base}/sessions/${items[0]?.session}`);
    await other.page.getByLabel("Events", { exact: true }).waitFor();
    cable.interrupt();
    await page.getByText(/^Connection lost at/).waitFor();
    await screenshot(page, "now-lost");
    await bob.play();
    await stack.drained(bob);
    cable.restore();
    await page.getByText(/^Connection lost at/).waitFor({ state: "detached" });
    const loops = await api("operations?source=bob/shop&kind=loop&limit=1000");
    const strip = page.locator(".row", { hasText: "bob/shop" }).locator(".strip a");
    await expect.poll(() => strip.count()).toBe(Math.min(10, loops.items.length));
    const all = (await api(`events?session=${items[0]?.session}&limit=1000`)) as { items: Item[] };
    const expected = all.items.filter(({ kind }) => kind !== "mirror.received").length;
    await other.page.getByLabel(`${expected} events`, { exact: true }).waitFor();
  });
});

describe.skipIf(browserProgram === undefined)("the page of a Tapedeck with tokens", () => {
  it("lets the holder of a token in and out, and shows nothing to anybody else", async () => {
    await using tokens = await startTokenStack();
    const viewer = await tokens.token("default", ["viewer"]);
    await using cleanup = new AsyncDisposableStack();
    const browser = cleanup.adopt(await launchBrowser(), (one) => one.close());
    await using opened = await openPage(browser, `http://${tokens.on.stack.http}/`);
    const { page, context, errors } = opened;
    await page.getByLabel("Token").fill("tdk_nobody");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").waitFor();
    expect(await faultsOf(page)).toEqual([]);
    await screenshot(page, "sign-in");
    await page.getByLabel("Token").fill(viewer.text);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("Nothing is recorded yet").waitFor();
    await screenshot(page, "now-empty");
    await page.goto(`http://${tokens.on.stack.http}/health`);
    await page.getByText("tables behind the log").waitFor();
    await page.getByText("subscribers").waitFor();
    expect(await page.getByRole("heading", { name: "Tokens" }).count()).toBe(0);
    await page.goto(`http://${tokens.on.stack.http}/`);
    await page.getByText("Nothing is recorded yet").waitFor();
    expect(await page.evaluate("document.cookie")).toBe("");
    await page.reload();
    await page.getByText("Nothing is recorded yet").waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token").waitFor();
    expect([await context.cookies(), errors]).toEqual([[], []]);
  });

  it("shows the tokens to an admin", async () => {
    await using tokens = await startTokenStack();
    const admin = await tokens.token("default", ["admin"]);
    await using cleanup = new AsyncDisposableStack();
    const browser = cleanup.adopt(await launchBrowser(), (one) => one.close());
    await using opened = await openPage(browser, `http://${tokens.on.stack.http}/health`);
    const { page, errors } = opened;
    await page.getByLabel("Token").fill(admin.text);
    await page.getByRole("button", { name: "Sign in" }).click();
    const line = page.locator("tr", { hasText: "admin" });
    await line.first().waitFor();
    expect(await page.content()).not.toContain(admin.text);
    expect(await faultsOf(page)).toEqual([]);
    await screenshot(page, "health-admin");
    expect(errors).toEqual([]);
  });
});
