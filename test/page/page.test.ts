import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { durationText } from "@tapedeck/client/lanes/format";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { type FakeSkaffold, startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Stack, startStack } from "../stack/stack.ts";
import { browserProgram, faultsOf, launchBrowser, openPage, screenshot } from "./browser.ts";

// The rest of the browser tests is in page.long.test.ts.

const recordings = join(import.meta.dirname, "../../packages/fakes/recordings/skaffold");

describe.skipIf(browserProgram === undefined)("the page", () => {
  const cleanup = new AsyncDisposableStack();
  let [stack, fake, browser]: [Stack?, FakeSkaffold?, Browser?] = [];
  let played: Promise<unknown> | undefined;

  beforeAll(async () => {
    const recording = loadRecording(join(recordings, "04-deploy-failure-then-recovery"));
    fake = cleanup.use(await startFakeSkaffold({ recording }));
    stack = cleanup.use(await startStack({ skaffold: [{ address: fake.address }] }));
    browser = cleanup.adopt(await launchBrowser(), (one) => one.close());
    await stack.connected();
  });
  afterAll(() => cleanup.disposeAsync());

  const api = async (path: string) =>
    JSON.parse((await (stack ?? expect.fail()).httpCall("GET", `/api/v1/${path}`)).body);
  const failedLoop = async () => {
    const { items } = await api("operations?kind=loop&outcome=failed&limit=100");
    const { session, runner, loop } = items.at(-1);
    return `/loops/${session}.${runner}.${loop}`;
  };
  /** The output of a loop comes before the next loop begins, as in the original run. */
  const playInOrder = async () => {
    const upstream = fake ?? expect.fail();
    await upstream.playUntil({ v1: 17 });
    await stack?.drained(upstream);
    await upstream.play();
  };
  const fakeHasPlayed = async () => {
    await played;
    await stack?.drained(fake ?? expect.fail());
  };

  it("shows a loop as it happens, without a script that throws or breaks the content security policy", async () => {
    await using opened = await openPage(browser ?? expect.fail(), `http://${stack?.http}/`);
    const { page, errors } = opened;
    await page.getByText("alice/shop").waitFor();
    played = playInOrder();
    await page.getByTitle(/^loop 1: good/).waitFor();
    expect(errors).toEqual([]);
  });

  it("counts what fails and what is recorded in every view, and searches from each", async () => {
    await fakeHasPlayed();
    await using opened = await openPage(browser ?? expect.fail(), `http://${stack?.http}/health`);
    const { page, errors } = opened;
    const counts = page.locator(".top .counts");
    await counts.getByText("1 failing").waitFor();
    await counts.getByText("1 recording").waitFor();
    for (const view of ["Compare", "Trends", "Now"]) {
      await page.getByRole("link", { name: view, exact: true }).click();
      await counts.getByText("1 failing").waitFor();
    }
    await page.locator(".row").waitFor();
    await page.getByRole("link", { name: "Health", exact: true }).click();
    await page.getByLabel("Filter by source, artifact or error").fill("nobody");
    await page.getByLabel("Filter by source, artifact or error").press("Enter");
    await page.getByRole("heading", { name: "What happens now" }).waitFor({ state: "attached" });
    await page.getByText("No source, artifact or error matches “nobody”.").waitFor();
    expect([await page.locator(".row").count(), errors]).toEqual([0, []]);
    await page.getByRole("button", { name: "Show all sources" }).click();
    await page.locator(".row").waitFor();
    await page.goto(`http://${stack?.http}/?source=nobody/shop`);
    await page.getByText("There is no source nobody/shop here.").waitFor();
    expect(errors).toEqual([]);
  });

  it("counts in the tab what fails, and says at a path that nobody has what was meant", async () => {
    await fakeHasPlayed();
    await using opened = await openPage(browser ?? expect.fail(), `http://${stack?.http}/loop`);
    const { page, errors } = opened;
    await page.getByRole("heading", { name: "There is nothing at /loop" }).waitFor();
    await expect.poll(() => page.title()).toBe("(1) Nothing here · Tapedeck");
    const icon = await page.locator('link[rel="icon"]').getAttribute("href");
    expect(decodeURIComponent(icon ?? "")).toContain(">1</text>");
    await page.locator("main p").getByRole("link", { name: "Loops" }).click();
    await page.getByRole("link", { name: "loop 1", exact: true }).first().waitFor();
    await page.getByRole("link", { name: "Compare", exact: true }).click();
    await page.getByLabel("Who fails now").getByRole("link", { name: "its last good one" }).click();
    await page.getByLabel("What differs", { exact: true }).waitFor();
    expect(errors).toEqual([]);
  });

  it("says of a failed loop each thing once, what its output says first", async () => {
    await fakeHasPlayed();
    await using opened = await openPage(browser ?? expect.fail(), `http://${stack?.http}${await failedLoop()}`);
    const { page, errors } = opened;
    const failure = page.getByLabel("What failed first");
    await failure
      .getByRole("heading", { name: /deploy: error: unable to recognize "STDIN": no matches for kind/ })
      .waitFor();
    await page.getByLabel("What differs from the last good loop").waitFor();
    const above = page.locator(".failure, .differences");
    const said = (await above.allTextContents()).join("\n");
    expect(said.split("Deploymint")).toHaveLength(2);
    // The output below contains it.
    expect(said).not.toContain("kubectl apply: exit status 1");
    await page.locator(".log pre", { hasText: "kubectl apply: exit status 1" }).waitFor();
    // The output stands between why it failed and what differs, with the line marked.
    await page.locator(".failure + .log pre .error", { hasText: "Deploymint" }).waitFor();
    await page.locator(".log + .differences").waitFor();
    expect(errors).toEqual([]);
  });

  it("shows the events of a session with their date, cut lines whole, and errors red", async () => {
    await fakeHasPlayed();
    const { items } = await api("sessions?limit=1");
    await using opened = await openPage(browser ?? expect.fail(), `http://${stack?.http}/sessions/${items[0].session}`);
    const { page, errors } = opened;
    const events = page.getByLabel("Events", { exact: true });
    // Output is folded, but for who looks for it.
    await events.locator(".folded").first().waitFor();
    await page.getByLabel("Filter events").fill("kind:log.* web:");
    await events.locator(".folded").first().waitFor({ state: "detached" });
    await events
      .getByText(/^ - web -> web:[0-9a-f]{64}$/)
      .first()
      .waitFor();
    const when = events.locator(".when").first();
    // It was recorded on another day.
    expect(await when.textContent()).toMatch(/^\d+ \w{3} (\d{4} )?\d\d:\d\d:\d\d$/);
    expect(await when.getAttribute("title")).toMatch(/^\w{3} \d+ \w{3} \d{4}, \d\d:\d\d:\d\d\.\d{3} /);
    const lacking =
      "[...document.querySelectorAll('.event-list .when')].map((cell) => cell.scrollWidth - cell.clientWidth)";
    expect(Math.max(...((await page.evaluate(lacking)) as number[]))).toBe(0);
    await page.getByLabel("Filter events").fill("kind:log.* Deploymint");
    await events.locator("li.failed", { hasText: "Deploymint" }).first().waitFor();
    expect([await faultsOf(page), errors]).toEqual([[], []]);
  });

  it("says what a refusal means and what to do", async () => {
    await fakeHasPlayed();
    await using opened = await openPage(browser ?? expect.fail(), "about:blank");
    const { page, errors } = opened;
    const json = { error: { code: "limit_exceeded", message: "more than 50 requests in a second" } };
    let refuses = true;
    await page.route("**/api/v1/operations*", (route) =>
      refuses ? route.fulfill({ status: 429, headers: { "retry-after": "3" }, json }) : route.continue(),
    );
    await page.goto(`http://${stack?.http}${await failedLoop()}`);
    await page.getByRole("alert").getByText("Tapedeck is asked too much right now. Try again in 3 seconds.").waitFor();
    expect(await faultsOf(page)).toEqual([]);
    refuses = false;
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByLabel("What failed first").waitFor();
    expect(errors).toEqual([]);
  });
});

it.skipIf(browserProgram === undefined)("Health links to the manual only where the gateway has it", async () => {
  await using cleanup = new AsyncDisposableStack();
  const stack = cleanup.use(await startStack({ skaffold: [] }));
  const browser = cleanup.adopt(await launchBrowser(), (one) => one.close());
  await using opened = await openPage(browser, "about:blank");
  const { page, errors } = opened;
  let docs: string | undefined;
  await page.route("**/about", async (route) => {
    const { docs: _, ...answer } = await (await route.fetch()).json();
    await route.fulfill({ json: { ...answer, docs } });
  });
  await page.route("**/docs/", (route) => route.fulfill({ contentType: "text/html", body: "<h1>The manual</h1>" }));
  const manual = page.getByRole("link", { name: "manual" });
  await page.goto(`http://${stack.http}/health`);
  await page.getByText("Figures for monitoring").waitFor();
  expect(await manual.count()).toBe(0);
  docs = "/docs/";
  await page.reload();
  await manual.click();
  await page.getByRole("heading", { name: "The manual" }).waitFor();
  expect([new URL(page.url()).pathname, errors]).toEqual(["/docs/", []]);
});

it.skipIf(browserProgram === undefined)("Health says how the log grew, and what waits to be recorded", async () => {
  await using cleanup = new AsyncDisposableStack();
  const recording = loadRecording(join(recordings, "20-old-v1.39.18"));
  const fake = cleanup.use(await startFakeSkaffold({ recording }));
  const stack = cleanup.use(await startStack({ skaffold: [{ address: fake.address }] }));
  const browser = cleanup.adopt(await launchBrowser(), (one) => one.close());
  await stack.connected();
  await fake.play();
  await stack.drained(fake);
  await using opened = await openPage(browser, "about:blank");
  const { page, errors } = opened;
  let waits: object[] | undefined;
  // The log is away, and a tap has no more room.
  await page.route("**/api/v1/status", async (route) => {
    const answer = await (await route.fetch()).json();
    await route.fulfill({ json: waits === undefined ? answer : { ...answer, waiting: waits } });
  });
  await page.goto(`http://${stack.http}/health`);
  const figure = (name: string) => page.locator(".checks div", { has: page.getByText(name, { exact: true }) });
  await figure("grew in 24 hours by")
    .getByText(/^\d.*B, \d+ messages$/)
    .waitFor();
  await figure("waits to be recorded").getByText("nothing", { exact: true }).waitFor();
  waits = [
    { source: "default/alice/shop/skaffold", items: 1500, bytes: 3072, dropped: 2 },
    { source: "default/bob/shop/skaffold", items: 4, bytes: 1024, dropped: 0 },
  ];
  await figure("waits to be recorded").getByText("1504 items, 4.0 KiB; 2 frames had no room !").waitFor();
  // Each source has its own, in words on the page.
  const line = page.locator("tr", { has: page.getByRole("link", { name: "alice/shop" }) });
  await line.getByText("1500 items, 3.0 KiB; 2 frames had no room !").waitFor();
  const lag = line.locator('[data-name="age"]');
  const sources = async () => JSON.parse((await stack.httpCall("GET", "/api/v1/sources")).body).items;
  // Nobody needs a token here, so everybody is an admin.
  const workspace = page.locator("tr", { has: page.getByRole("rowheader", { name: "default", exact: true }) });
  await workspace.locator('[data-name="tables"]').getByText("up to date").waitFor();
  await workspace.locator('[data-name="kept"]').getByText("for ever").waitFor();
  expect(Number(await workspace.locator('[data-name="events"]').textContent())).toBeGreaterThan(10);
  // The page asks every few seconds.
  await expect
    .poll(async () => durationText(Math.max(0, (await sources())[0].lagMs)) === (await lag.textContent()))
    .toBe(true);
  for (const width of [390, 1440]) {
    await page.setViewportSize({ width, height: 844 });
    const cells = await line.locator("td").evaluateAll((all) => all.map((cell) => cell.getBoundingClientRect().right));
    expect(Math.max(...cells)).toBeLessThanOrEqual(width);
  }
  expect([await faultsOf(page), errors]).toEqual([[], []]);
  await screenshot(page, "health-waits");
});

it.skipIf(browserProgram === undefined)("Health lists sinks, with how far they are and what is parked", async () => {
  await using cleanup = new AsyncDisposableStack();
  const sinks = JSON.stringify([{ name: "ops", target: "https://hooks.example/" }]);
  const stack = cleanup.use(await startStack({ skaffold: [], env: { TAPEDECK_SINKS: sinks } }));
  const browser = cleanup.adopt(await launchBrowser(), (one) => one.close());
  await using opened = await openPage(browser, "about:blank");
  const { page, errors } = opened;
  let more: object = {};
  // Its target is away, and refuses some.
  await page.route("**/api/v1/sinks", async (route) => {
    const { items } = await (await route.fetch()).json();
    await route.fulfill({ json: { items: [{ ...items[0], ...more }] } });
  });
  await page.route("**/api/v1/sinks/ops/parked", (route) => {
    const at = new Date().toISOString();
    const event = {
      position: "32bl00-gcj869",
      event: "s.v1.1",
      kind: "build.failed",
      tries: 10,
      error: "answered 400",
      at,
    };
    return route.fulfill({ json: { items: [event, { ...event, position: "32bl01-gcj869" }] } });
  });
  await page.goto(`http://${stack.http}/health`);
  const line = page.locator("tr", { has: page.getByRole("rowheader", { name: "ops", exact: true }) });
  await line.locator('[data-name="target"]').getByText("https://hooks.example", { exact: true }).waitFor();
  await line.locator('[data-name="behind"]').getByText("not at all").waitFor();
  const failing = { state: "retrying", lagEvents: 12, lagSeconds: 90, parked: 2 };
  more = { ...failing, error: "answered 503", failure: "away" };
  await line.locator('[data-name="state"]').getByText("✕ its target is away").waitFor();
  more = { ...failing, error: "answered 500", failure: "refused" };
  await line.locator('[data-name="state"]').getByText("✕ its target refuses").waitFor();
  await line.locator('[data-name="behind"]').getByText("12 messages, 1 min 30 s").waitFor();
  await line.locator('[data-name="parked"]').getByText("2").waitFor();
  await line.locator('[data-name="last failure"]').getByText("answered 500").waitFor();
  await page.getByText("2 events parked of ops").click();
  await page.getByRole("cell", { name: "32bl01-gcj869" }).waitFor();
  expect(await page.getByRole("cell", { name: "answered 400" }).count()).toBe(2);
  expect([await faultsOf(page), errors]).toEqual([[], []]);
  await screenshot(page, "health-sinks");
});

it("loads at most 120 KB of compressed script first, and Trends with its charts when it is opened", () => {
  const dist = join(import.meta.dirname, "../../packages/web/dist");
  const sizeOf = (names: readonly string[]) =>
    names.reduce((sum, name) => sum + gzipSync(readFileSync(join(dist, "assets", name))).length, 0);
  const all = readdirSync(join(dist, "assets")).filter((name) => name.endsWith(".js"));
  const index = readFileSync(join(dist, "index.html"), "utf8");
  const first = all.filter((name) => index.includes(`/assets/${name}`));
  const kilobytes = (names: readonly string[]) => Math.round(sizeOf(names) / 102.4) / 10;
  console.log(`scripts, compressed: ${kilobytes(first)} KB at first, ${kilobytes(all)} KB with Trends`);
  expect(first.length).toBeGreaterThan(0);
  expect(sizeOf(first)).toBeLessThan(120 * 1_024);
  expect(first.filter((name) => name.startsWith("trends"))).toEqual([]);
  expect(all.filter((name) => name.startsWith("trends"))).toHaveLength(1);
});
